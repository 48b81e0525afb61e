// Requests to the server. A request that got no answer, and one that the database could not take, may be sent again.
export class ApiError extends Error {
  constructor(message, status, data) {
    super(message);
    this.status = status;
    this.data = data;
  }
  get retry() { return this.status === 0 || this.status === 503 || this.status === 507 || this.status >= 520; }
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(`/api/${path}`, options);
  } catch {
    throw new ApiError("The server does not answer.", 0, {});
  }
  if (response.ok) return response;
  let data = {};
  try { data = await response.json(); } catch { /* not ours: the status says enough */ }
  const told = data.error ?? (Array.isArray(data.detail) ? data.detail.map((one) => `${one.loc.join(".")}: ${one.msg}`).join("; ") : null);
  throw new ApiError(told ?? `The server answered ${response.status}.`, response.status, data);
}

export const get = async (path) => (await request(path)).json();
export const bytes = async (path) => (await request(path)).arrayBuffer();
export const text = async (path) => (await request(path)).text();
export const post = async (path, body = {}) =>
  (await request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })).json();
export const query = (values) => new URLSearchParams(values).toString();
export const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
