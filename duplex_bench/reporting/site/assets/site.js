// Shared by every page: theme, sortable tables, and the hand-over of data from script files.
"use strict";
window.duplexReport = (function () {
  const root = document.documentElement;
  const KEY = "duplex-report-theme";
  const waiting = new Map();
  const received = new Map();

  function stored() {
    try { return localStorage.getItem(KEY); } catch { return null; }  // storage may be barred for pages on disk
  }
  const chosen = stored();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  function toggleTheme() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    document.dispatchEvent(new Event("duplex-theme"));
    try { localStorage.setItem(KEY, root.dataset.theme); } catch { /* the choice then lasts for this page */ }
  }

  function receive(name, value) {
    received.set(name, value);
    for (const resolve of waiting.get(name) || []) resolve(value);
    waiting.delete(name);
  }

  // A page on disk may not fetch a file, but may load a script that hands its data over.
  function load(name, file) {
    if (received.has(name)) return Promise.resolve(received.get(name));
    return new Promise((resolve, reject) => {
      waiting.set(name, [...(waiting.get(name) || []), resolve]);
      if (!file) return;
      const script = document.createElement("script");
      script.src = file;
      script.onerror = () => reject(new Error(`cannot load ${file}`));
      document.head.append(script);
    });
  }

  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  function number(value, unit) {
    if (value === null || value === undefined) return "\u2014";
    const digits = unit === "s" || Math.abs(value) < 10 ? 2 : 1;
    return value.toFixed(digits).replace("-", "\u2212") + (["s", "ms", "words"].includes(unit) ? "\u00a0" + unit : "");
  }

  const words = (name) => String(name).replaceAll("_", " ");

  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    table.querySelectorAll("td").forEach((cell) => {
      const head = heads[cell.cellIndex];
      if (head && table.classList.contains("board")) cell.dataset.label = head.querySelector("a")?.textContent || head.textContent.trim();
    });
    heads.forEach((head, column) => {
      const button = el("button", { type: "button", class: "sorter", "aria-label": `Sort by ${head.textContent.trim().split("\n")[0]}` }, "\u2195");
      button.addEventListener("click", () => {
        const descending = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((other) => { other.removeAttribute("aria-sort"); const b = other.querySelector(".sorter"); if (b) b.textContent = "\u2195"; });
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        button.textContent = descending ? "\u2193" : "\u2191";
        const numeric = head.dataset.sort === "number";
        const key = (row) => {
          const cell = row.cells[column];
          if (!cell) return null;
          if (!numeric) return cell.textContent.trim().toLowerCase();
          return cell.dataset.value === "" || cell.dataset.value === undefined ? null : Number(cell.dataset.value);
        };
        for (const body of table.tBodies) {
          const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
          // A missing score goes last in both directions: it is neither the best nor the worst.
          rows.sort((a, b) => {
            const [x, y] = [key(a), key(b)];
            if (x === null || y === null) return (x === null) - (y === null);
            return (x < y ? -1 : x > y ? 1 : 0) * (descending ? -1 : 1);
          });
          body.append(...rows);
        }
      });
      const hint = head.querySelector(".hint");
      if (hint) hint.before(button);
      else {
        // The button stays in the line of the last word.
        const words = head.textContent.trim().split(" ");
        const last = el("span", { class: "last-word" }, words.pop(), button);
        head.replaceChildren(words.length ? `${words.join(" ")} ` : "", last);
      }
    });
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("duplex-theme")));
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelector("[data-theme-toggle]").addEventListener("click", toggleTheme);
    document.querySelectorAll("table[data-sortable]").forEach(sortable);
  });

  return { receive, load, el, number, words };
})();
