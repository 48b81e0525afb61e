// Small helpers. Text from outside only ever becomes text nodes.
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

export const main = () => document.getElementById("main");

export function notice(text, kind = "info") {
  const box = document.getElementById("notices");
  const line = el("div", { class: `notice ${kind}` }, text, el("button", { class: "plain", "aria-label": "Close", onclick: () => line.remove() }, "×"));
  box.append(line);
  while (box.children.length > 3) box.firstChild.remove();
  if (kind !== "error") setTimeout(() => line.remove(), 6000);
  return line;
}

export function dialog(title, body, buttons) {
  const box = document.getElementById("dialog");
  return new Promise((resolve) => {
    const close = (value) => { box.close(); resolve(value); };
    box.replaceChildren(
      el("h2", {}, title), ...[body].flat(),
      el("div", { class: "actions" }, buttons.map(([label, value, style]) =>
        el("button", { class: style ?? "", autofocus: style === "primary", onclick: () => close(typeof value === "function" ? value() : value) }, label))),
    );
    box.oncancel = () => resolve(null);
    box.showModal();
  });
}

export function clock(seconds) {
  const minutes = Math.floor(seconds / 60);
  return `${minutes}:${(seconds - 60 * minutes).toFixed(2).padStart(5, "0")}`;
}

export function download(name, text, type = "text/plain") {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export const typing = (event) => event.target.closest?.("input, textarea, select, dialog");
