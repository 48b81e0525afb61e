// The interactive form of a figure, drawn when asked for: the library is large, and loads with the first one.
"use strict";
(function () {
  const { load, el } = window.duplexReport;
  const drawn = new Map();
  let library = null;

  function plotly() {
    library = library || new Promise((resolve, reject) => {
      const script = el("script", { src: "assets/plotly.min.js" });
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => { library = null; reject(new Error("assets/plotly.min.js is missing from this folder")); };
      document.head.append(script);
    });
    return library;
  }

  // As in figures/draw.py: colours in which small text is written that a dark ground would swallow.
  const ON_DARK = { "#0072b2": "#4aa3df", "#009e73": "#2bb78a", "#46586e": "#66798f" };

  function inTheme(part) {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    let text = JSON.stringify(part);
    if (dark) for (const [light, other] of Object.entries(ON_DARK)) text = text.replaceAll(`"${light}"`, `"${other}"`);
    return JSON.parse(text);
  }

  // Inks come from the page's theme; everything that carries meaning has its colour from the figure itself.
  function themed(layout) {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim();
    const rule = style.getPropertyValue("--rule").trim();
    const ground = style.getPropertyValue("--raised").trim();
    const found = {
      ...layout,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink },
      margin: { l: 8, r: 8, t: 44, b: 36 },
      hoverlabel: { bgcolor: ground, bordercolor: rule, font: { color: ink } },
      hovermode: "closest",
    };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis/.test(name)) {
        const title = { ...layout[name].title, standoff: 4 };
        found[name] = { ...layout[name], title, gridcolor: rule, linecolor: rule, automargin: true };
      }
    }
    return found;
  }

  async function draw(figure) {
    const name = figure.dataset.figure;
    const [library, spec] = await Promise.all([plotly(), load(`figure:${name}`, `figures/${name}.js`)]);
    let host = figure.querySelector(".plotly-host");
    if (!host) {
      host = el("div", { class: "plotly-host", role: "img", "aria-label": figure.querySelector("img").alt });
      figure.prepend(host);
    }
    host.style.height = `${spec.height_px}px`;
    await library.newPlot(host, inTheme(spec.data), themed(inTheme(spec.layout)), { responsive: true, displaylogo: false });
    drawn.set(figure, spec);
  }

  async function toggle(figure, button) {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.disabled = true;
    try {
      if (on && !drawn.has(figure)) await draw(figure);
      figure.classList.toggle("interactive", on);
      button.setAttribute("aria-pressed", String(on));
      button.textContent = on ? "As printed" : "Interactive";
      if (on) window.Plotly.Plots.resize(figure.querySelector(".plotly-host"));
    } catch (error) {
      button.after(el("span", { class: "reason", role: "alert" }, ` ${error.message}`));
    } finally {
      button.disabled = false;
    }
  }

  document.querySelectorAll("[data-figure]").forEach((figure) => {
    const button = figure.querySelector("[data-interactive]");
    if (button) button.addEventListener("click", () => toggle(figure, button));
  });
  document.addEventListener("duplex-theme", () => {
    for (const [figure, spec] of drawn) {
      window.Plotly.react(figure.querySelector(".plotly-host"), inTheme(spec.data), themed(inTheme(spec.layout)));
    }
  });
})();
