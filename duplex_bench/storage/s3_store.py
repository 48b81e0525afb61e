"""An object store in an S3-compatible bucket, through boto3.

What a reader sees is whole: S3 shows an object when its upload is complete. What a writer is told is checked: the body
travels with its MD5, which is signed, or with the SHA-256 that names it and that the store then confirms; and every
object that was written is looked up once, so that a store that says yes and keeps nothing is found out while the bytes
are still at hand: at once, or, after ``create_unseen``, many together. Errors of the network or the store are OSErrors,
as with a folder, so that an item fails and the run goes on.
"""

import base64
import datetime
import email.utils
import hashlib
import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urlsplit

from duplex_bench.storage.object_store import StorageFullError, checked_key
from duplex_bench.storage.unseen_writes import Written

# All (ours).
MULTIPART_BYTES = 16 * 2**20
"""Larger objects go up in parts of this size, each retried by itself."""
LOOK_FIRST_BYTES = 2**20
"""From this size on a create-only write first asks whether the object is there, instead of sending it in vain."""
WRITE_ATTEMPTS = 3
"""How often a write that the store confirmed and lost is made again."""
READS_AT_ONCE = 16
LISTED_FOR_LOOKS = 30
"""A page of a listing (1,000 objects) costs about as much as this many look-ups of single objects (measured)."""

_MISSING = {"404", "NoSuchKey", "NotFound"}
_THERE = {"PreconditionFailed", "412"}
_FULL = {"507", "InsufficientStorage", "QuotaExceeded", "XMinioStorageFull", "EntityTooLarge"}
_REMEDY = {
    "NoSuchBucket": "make the bucket, or correct DUPLEX_BENCH_STORE",
    "AccessDenied": "give these credentials leave to list, read, write and delete in the bucket",
    "InvalidAccessKeyId": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "SignatureDoesNotMatch": "set AWS_SECRET_ACCESS_KEY to the secret of AWS_ACCESS_KEY_ID",
}


class StoreUnavailableError(OSError):
    """The object store did not do what it was asked, after retries; finished work is kept, so run again."""


class WriteLostError(StoreUnavailableError):
    """The object store confirmed a write and has not got it."""


@dataclass(frozen=True, slots=True)
class S3Settings:
    """Patience with the store. Endpoint, region and credentials come from the AWS_* variables, as boto3 reads them."""

    attempts: int = 6
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 60.0
    connections: int = 32


class S3Store:
    """Objects of one bucket, below ``prefix``."""

    def __init__(self, bucket: str, prefix: str = "", settings: S3Settings | None = None) -> None:
        import boto3
        from botocore.config import Config

        chosen = settings or S3Settings()
        self.bucket = bucket
        self.prefix = prefix.strip("/")
        session = boto3.session.Session()
        # Its own parser of dates takes two thirds of the time of a listing.
        session._session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_moment)
        self._takes_sha256 = True
        self._client: Any = session.client(
            "s3",
            config=Config(
                retries={"mode": "standard", "total_max_attempts": chosen.attempts},
                connect_timeout=chosen.connect_timeout_s,
                read_timeout=chosen.read_timeout_s,
                max_pool_connections=chosen.connections,
                # Not every S3-compatible store knows the newer checksums; an MD5 is sent, or a SHA-256 that is at hand.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                # Over plain HTTP the body would be hashed a second time; its MD5 is in a header that is signed.
                s3={"payload_signing_enabled": False},
            ),
        )

    def get(self, key: str) -> bytes:
        """The object's bytes; raises KeyError if there is none."""
        try:
            answer = self._client.get_object(Bucket=self.bucket, Key=self._name(key))
            body: bytes = answer["Body"].read()
        except _failures() as error:
            if _code(error) in _MISSING:
                raise KeyError(key) from None
            _give_up(error, f"read {self._address(key)}")
        return body

    def get_many(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """Objects in the order of ``keys``, several on the way at once; None for one that is not there."""

        def one(key: str) -> bytes | None:
            try:
                return self.get(key)
            except KeyError:
                return None

        with ThreadPoolExecutor(READS_AT_ONCE) as threads:
            yield from zip(keys, threads.map(one, keys), strict=True)

    def put(self, key: str, data: bytes) -> None:
        """Write or replace an object; it is seen whole or not at all.

        Raises:
            StorageFullError: the store has no space.
            WriteLostError: the store confirmed the write, repeatedly, and has not got it.
            StoreUnavailableError: anything else that retries did not cure.
        """
        for _ in range(WRITE_ATTEMPTS):
            written = self._send(key, data, {})
            if self._holds(key, data, written):
                return
        raise WriteLostError(f"{self._address(key)}: the store confirms the write and has not got it: look at its logs")

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object unless one is there; True if this call wrote it. Raises what ``put`` raises."""
        if len(data) >= LOOK_FIRST_BYTES and self.exists(key):
            return False
        for _ in range(WRITE_ATTEMPTS):
            written = self._send(key, data, {"IfNoneMatch": "*"})
            if written is None:
                return False
            if self._holds(key, data, written):
                return True
        raise WriteLostError(f"{self._address(key)}: the store confirms the write and has not got it: look at its logs")

    def create_unseen(self, key: str, data: bytes, sha256: str = "") -> Written | None:
        """Write an object unless one is there, and do not look it up: the caller hands the answer to ``not_as_written``
        before anything names the object. None where one was there. Raises what ``put`` raises, but WriteLostError.

        ``sha256`` is the hexadecimal digest of ``data``, where it is known: it then travels in place of an MD5.
        """
        if len(data) >= LOOK_FIRST_BYTES and self.exists(key):
            return None
        tag = self._send(key, data, {"IfNoneMatch": "*"}, sha256)
        return None if tag is None else Written(len(data), tag)

    def not_as_written(self, written: Mapping[str, Written]) -> set[str]:
        """Those keys under which the store has nothing, or something else than it confirmed."""
        return {key for key, found in self._looked_up(list(written)).items() if found != written[key]}

    def exists(self, key: str) -> bool:
        """Whether an object is there."""
        return self._head(key) is not None

    def missing(self, keys: Sequence[str]) -> set[str]:
        """Those of ``keys`` under which there is no object."""
        return {key for key, found in self._looked_up(keys).items() if found is None}

    def stamp(self, key: str) -> str:
        """A text that changes when the object does; empty where there is none."""
        head = self._head(key)
        return "" if head is None else str(head["ETag"])

    def delete(self, key: str) -> None:
        """Remove an object; no error if there is none."""
        try:
            self._client.delete_object(Bucket=self.bucket, Key=self._name(key))
        except _failures() as error:
            _give_up(error, f"delete {self._address(key)}")

    def keys(self, prefix: str) -> Iterator[str]:
        """Every key below ``prefix`` (a folder, ``.`` for all), sorted."""
        whole = f"{self.prefix}/" if self.prefix else ""
        below = whole if prefix == "." else f"{self._name(prefix)}/"
        skip = len(self.prefix) + 1 if self.prefix else 0
        pages = self._client.get_paginator("list_objects_v2")
        try:
            for page in pages.paginate(Bucket=self.bucket, Prefix=below):
                for found in page.get("Contents", ()):
                    yield str(found["Key"])[skip:]
        except _failures() as error:
            _give_up(error, f"list {self._address(prefix)}")

    def abandoned_uploads(self, remove: bool = False) -> int:
        """Uploads in parts that nobody ended: no reader sees them, but they take space. Removed on request."""
        found = 0
        pages = self._client.get_paginator("list_multipart_uploads")
        try:
            for page in pages.paginate(Bucket=self.bucket, Prefix=f"{self.prefix}/" if self.prefix else ""):
                for upload in page.get("Uploads", ()):
                    found += 1
                    if remove:
                        self._client.abort_multipart_upload(
                            Bucket=self.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                        )
        except _failures() as error:
            _give_up(error, f"list uploads of bucket {self.bucket}")
        return found

    def make_bucket(self) -> None:
        """Make the bucket if it is not there."""
        try:
            self._client.head_bucket(Bucket=self.bucket)
        except _failures() as error:
            if _code(error) not in {*_MISSING, "NoSuchBucket"}:
                _give_up(error, f"look at bucket {self.bucket}")
            try:
                self._client.create_bucket(Bucket=self.bucket)
            except _failures() as refused:
                if _code(refused) not in {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}:
                    _give_up(refused, f"make bucket {self.bucket}")

    def check_conditions(self) -> None:
        """Make sure that the store keeps what create-only writes promise: leases and blobs rest on it.

        Raises:
            ValueError: it replaced an object that was to be created only.
        """
        probe = f"probe/{uuid.uuid4().hex}"
        try:
            if not self.put_if_absent(probe, b"first") or self.put_if_absent(probe, b"second"):
                raise ValueError(
                    f"the object store of bucket {self.bucket} ignores If-None-Match: two runs could not be kept "
                    "apart on it. Use one that honours conditional writes"
                )
        finally:
            self.delete(probe)

    def _name(self, key: str) -> str:
        inside = checked_key(key).as_posix()
        return f"{self.prefix}/{inside}" if self.prefix else inside

    def _address(self, key: str) -> str:
        return f"s3://{self.bucket}/{self._name(key)}"

    def _head(self, key: str) -> Any:
        try:
            return self._client.head_object(Bucket=self.bucket, Key=self._name(key))
        except _failures() as error:
            if _code(error) in _MISSING:
                return None
            _give_up(error, f"look up {self._address(key)}")

    def _looked_up(self, keys: Sequence[str]) -> dict[str, Written | None]:
        """What is stored under each key. Listed, a thousand at a time, while that costs less than asking for each; what
        no list shows is asked for, since not every store lists in the order of its keys.
        """
        wanted = sorted(set(keys))
        found: dict[str, Written | None] = {}
        folder, ahead = _common_folder(wanted), wanted
        while len(ahead) >= LISTED_FOR_LOOKS:
            page, end = self._page(folder, ahead[0])
            found |= {key: page[key] for key in ahead if key in page}
            later = [key for key in ahead if end is not None and key > end]
            if len(ahead) - len(later) < LISTED_FOR_LOOKS:
                break
            ahead = later

        def one(key: str) -> Written | None:
            head = self._head(key)
            return None if head is None else Written(int(head["ContentLength"]), str(head["ETag"]))

        asked = [key for key in wanted if key not in found]
        if asked:
            with ThreadPoolExecutor(READS_AT_ONCE) as threads:
                found |= zip(asked, threads.map(one, asked), strict=True)
        return found

    def _page(self, folder: str, first: str) -> tuple[dict[str, Written], str | None]:
        """One page of the objects below ``folder`` from ``first`` on, and the last key it speaks for; None: all."""
        skip = len(self.prefix) + 1 if self.prefix else 0
        # The listing begins after a key: the one just before the first wanted.
        before = f"{self._name(first)[:-1]}{chr(ord(first[-1]) - 1)}\x7f"
        try:
            told = self._client.list_objects_v2(
                Bucket=self.bucket, Prefix=f"{self._name(folder)}/" if folder else "", StartAfter=before
            )
        except _failures() as error:
            _give_up(error, f"list {self._address(folder or first)}")
        listed = told.get("Contents", ())
        page = {str(one["Key"])[skip:]: Written(int(one["Size"]), str(one["ETag"])) for one in listed}
        return page, max(page, default=first) if told.get("IsTruncated") else None

    def _holds(self, key: str, data: bytes, tag: str | None) -> bool:
        head = self._head(key)
        return head is not None and int(head["ContentLength"]) == len(data) and str(head["ETag"]) == tag

    def _send(self, key: str, data: bytes, condition: dict[str, str], sha256: str = "") -> str | None:
        """One upload; the entity tag the store gave it, or None where a condition was not met."""
        try:
            if len(data) > MULTIPART_BYTES:
                return self._in_parts(self._name(key), data, condition)
            if sha256 and self._takes_sha256:
                return self._with_sha256(self._name(key), data, condition, sha256)
            return self._whole(self._name(key), data, condition)
        except _failures() as error:
            if condition and _code(error) in _THERE:
                return None
            _give_up(error, f"write {self._address(key)}")

    def _with_sha256(self, name: str, data: bytes, condition: dict[str, str], sha256: str) -> str:
        """The digest is at hand, and an MD5 would be one more pass over the bytes. A store that does not confirm it
        has not looked: the same bytes go again, with their MD5, and so does all that follows.
        """
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        answer = self._client.put_object(Bucket=self.bucket, Key=name, Body=data, ChecksumSHA256=checksum, **condition)
        if answer.get("ChecksumSHA256") == checksum:
            return str(answer["ETag"])
        self._takes_sha256 = False
        return self._whole(name, data, {})

    def _whole(self, name: str, data: bytes, condition: dict[str, str]) -> str:
        answer = self._client.put_object(Bucket=self.bucket, Key=name, Body=data, ContentMD5=_md5(data), **condition)
        return str(answer["ETag"])

    def _in_parts(self, name: str, data: bytes, condition: dict[str, str]) -> str:
        where = {"Bucket": self.bucket, "Key": name}
        upload = self._client.create_multipart_upload(**where)["UploadId"]
        try:
            parts = []
            for number, start in enumerate(range(0, len(data), MULTIPART_BYTES), start=1):
                part = data[start : start + MULTIPART_BYTES]
                sent = self._client.upload_part(
                    **where, UploadId=upload, PartNumber=number, Body=part, ContentMD5=_md5(part)
                )
                parts.append({"PartNumber": number, "ETag": sent["ETag"]})
            ended = self._client.complete_multipart_upload(
                **where, UploadId=upload, MultipartUpload={"Parts": parts}, **condition
            )
        except BaseException:
            self._client.abort_multipart_upload(**where, UploadId=upload)
            raise
        return str(ended["ETag"])


def s3_store(address: str, settings: S3Settings | None = None) -> S3Store:
    """The store at ``s3://bucket/prefix``.

    Raises:
        ValueError: not such an address.
    """
    parts = urlsplit(address)
    if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"object store {address!r}: write it as s3://bucket or s3://bucket/prefix")
    prefix = parts.path.strip("/")
    if prefix:
        checked_key(prefix)
    return S3Store(parts.netloc, prefix, settings)


def _common_folder(keys: Sequence[str]) -> str:
    """The longest folder that holds all ``keys``, which are sorted; empty if there is none."""
    if not keys:
        return ""
    parts = zip(keys[0].split("/")[:-1], keys[-1].split("/")[:-1], strict=False)
    return "/".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], parts))


def _moment(told: Any) -> datetime.datetime:
    """A moment as S3 writes it: ISO 8601 in bodies, the form of mail in headers; anything else as botocore reads it."""
    for known in (datetime.datetime.fromisoformat, email.utils.parsedate_to_datetime):
        try:
            return known(told)
        except (TypeError, ValueError):
            continue
    from botocore.utils import parse_timestamp

    read: datetime.datetime = parse_timestamp(told)
    return read


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _failures() -> tuple[type[Exception], ...]:
    from botocore.exceptions import BotoCoreError, ClientError
    from urllib3.exceptions import HTTPError

    return (BotoCoreError, ClientError, HTTPError)


def _code(error: Exception) -> str:
    response: Any = getattr(error, "response", None)
    return str(response["Error"].get("Code", "")) if isinstance(response, dict) and "Error" in response else ""


def _give_up(error: Exception, wanted: str) -> NoReturn:
    code = _code(error)
    if code in _FULL:
        raise StorageFullError(f"could not {wanted}: the store has no space ({code})") from error
    remedy = _REMEDY.get(code, "finished work is kept: run the same again when the store answers")
    raise StoreUnavailableError(f"could not {wanted}: {error}: {remedy}") from error
