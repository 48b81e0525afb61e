import * as api from "./api.js";
import { el, main, notice } from "./dom.js";
import { showEditor } from "./editor.js";
import { showHelp } from "./help.js";
import { showListener } from "./listener.js";
import { showSessions } from "./sessions.js";
import { showTables } from "./tables.js";
import { showWindows } from "./windows.js";

let me = null;
let leave = null;

const PAGES = [
  ["sessions", "Sessions", showSessions],
  ["windows", "Window check", showWindows],
  ["listening", "Listener task", showListener],
  ["tables", "Agreement", showTables],
];

function header(current) {
  const links = PAGES.filter(([name]) => name !== "tables" || me.administrator).map(([name, label]) =>
    el("a", { href: `#/${name}`, "aria-current": name === current && "page" }, label));
  document.getElementById("top").replaceChildren(...[
    el("a", { class: "brand", href: "#/sessions" }, "duplex_bench ", el("span", { class: "quiet" }, "review")),
    el("nav", {}, links),
    me.blind && el("span", { class: "chip warn", title: "You do not see the engine's labels nor other people's work." }, "blind"),
    el("button", { onclick: () => showHelp(current), title: "Help (?)" }, "Help"),
    el("span", { class: "who" }, me.name, me.administrator && el("span", { class: "quiet" }, " · administrator")),
    el("button", { class: "plain", onclick: signOut }, "Sign out"),
  ].filter(Boolean));
}

async function signOut() {
  await api.post("sign-out");
  location.hash = "";
  location.reload();
}

export function signIn(needsToken) {
  return new Promise((resolve) => {
    document.getElementById("top").replaceChildren(el("span", { class: "brand" }, "duplex_bench ", el("span", { class: "quiet" }, "review")));
    const name = el("input", { id: "name", required: true, maxlength: 60, autocomplete: "username", value: localStorage.getItem("review:name") ?? "" });
    const token = el("input", { id: "token", type: "password", autocomplete: "current-password" });
    const wrong = el("p", { class: "wrong", role: "alert" });
    const form = el("form", { class: "entrance" },
      el("h1", {}, "Who are you?"),
      el("p", { class: "quiet" }, "Your name stands beside every label you change. Use the same one each time."),
      el("label", { for: "name" }, "Name"), name,
      ...(needsToken ? [el("label", { for: "token" }, "Token"), token] : []),
      wrong, el("button", { class: "primary" }, "Start"));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const person = await api.post("sign-in", { name: name.value, token: token.value });
        localStorage.setItem("review:name", person.name);
        resolve(person);
      } catch (error) { wrong.textContent = error.message; }
    });
    main().replaceChildren(form);
    name.focus();
  });
}

async function route() {
  if (leave) { await leave(); leave = null; }
  document.body.className = "";
  const [page, ...rest] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  try {
    const found = await api.get("me");
    me = found.name ? found : await signIn(found.needs_token);
    header(page || "sessions");
    if (page === "session") leave = await showEditor(me, rest[0], rest[1]);
    else leave = await (PAGES.find(([name]) => name === page) ?? PAGES[0])[2](me);
  } catch (error) {
    main().replaceChildren(el("h1", {}, "That did not work"), el("p", {}, error.message), el("button", { onclick: () => location.reload() }, "Try again"));
  }
}

window.addEventListener("hashchange", route);
window.addEventListener("unhandledrejection", (event) => notice(event.reason?.message ?? String(event.reason), "error"));
document.addEventListener("keydown", (event) => {
  if (event.key === "?" && !event.target.closest("input, textarea, dialog")) showHelp(location.hash.split("/")[1] ?? "sessions");
});
route();
