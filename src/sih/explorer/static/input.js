// What a person does: pointer, keys and buttons, each turned into one of the page's own verbs.

import { forgetTheme, stateColour, stateInk } from "./colour.js";
import { element } from "./maps.js";
import { copyOf } from "./state.js";
import { across } from "./svg.js";
import { copy } from "./takeaway.js";

const $ = (id) => document.getElementById(id);

// The choice of another state for the token looked at.
function tokenMenu(app, open) {
  const menu = $("token-menu");
  menu.hidden = !open || app.source.fixed;
  if (menu.hidden) return;
  const token = app.view.arrays.tokens[app.query()];
  menu.replaceChildren(...Array.from({ length: app.state.states }, (_, s) => {
    const button = element("button", "", { type: "button", "aria-label": `make it ${s}`, "aria-pressed": String(s === token) }, String(s));
    button.style.background = stateColour(s);
    button.style.color = stateInk(s);
    button.addEventListener("click", () => { tokenMenu(app, false); app.setToken(s); $("sequence").focus(); });
    return button;
  }));
  const host = $("sequence");
  const { middle } = across(host.clientWidth, app.window());
  const left = host.offsetLeft + middle(app.query()) - menu.offsetWidth / 2;
  menu.style.left = `${Math.max(6, Math.min(left, host.offsetLeft + host.clientWidth - menu.offsetWidth))}px`;
  menu.style.top = `${host.offsetTop + host.clientHeight - 20}px`;
}

function onKey(app, event) {
  const inField = event.target.closest("input, select, textarea, dialog, [role=radio]");
  if (event.ctrlKey || event.metaKey || event.altKey || !app.state) return;
  if (event.key === "Escape") { tokenMenu(app, false); return; }
  if (inField) return;
  const onButton = event.target.closest("button, summary, a");
  const size = app.state.length;
  const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -size, End: size };
  const onSequence = event.target.id === "sequence";
  if (event.key in moves && (onSequence || event.key === "ArrowLeft" || event.key === "ArrowRight")) {
    event.preventDefault();
    app.look({ query: Math.max(0, Math.min(size - 1, app.query() + moves[event.key])) });
  } else if (event.key === " " && !onButton) {
    event.preventDefault();
    app.justBegun = true;
    app.player.toggle();
  } else if (event.key === "Enter" && onSequence) tokenMenu(app, true);
  else if (/^[0-9]$/.test(event.key) && !onButton) app.setToken(Number(event.key));
  else if (event.key === "+" || event.key === "=") app.zoom(2);
  else if (event.key === "-") app.zoom(0.5);
}

export function listen(app) {
  $("sequence").addEventListener("click", (event) => {
    const box = $("sequence").getBoundingClientRect();
    const { lo, hi } = app.window();
    const { gutter, cell } = across(box.width, { lo, hi });
    const position = lo + Math.floor((event.clientX - box.left - gutter) / cell);
    if (position < lo || position >= hi) return;
    app.player.stop();
    app.look({ query: position });
    tokenMenu(app, true);
  });
  document.addEventListener("pointerdown", (event) => {
    if (!$("token-menu").contains(event.target) && !$("sequence").contains(event.target)) tokenMenu(app, false);
  });
  document.addEventListener("keydown", (event) => onKey(app, event));
  $("forward").addEventListener("click", () => app.step(1));
  $("back").addEventListener("click", () => app.step(-1));
  $("to-start").addEventListener("click", () => app.look({ query: 0 }));
  $("play").addEventListener("click", () => { app.justBegun = true; }, { capture: true });
  $("zoom-in").addEventListener("click", () => app.zoom(2));
  $("zoom-out").addEventListener("click", () => app.zoom(0.5));
  $("arcs").addEventListener("change", () => app.look({ arcs: $("arcs").value }));
  $("compare").addEventListener("click", () => app.change({ models: [...app.state.models, app.second()] }));
  for (const race of ["weight", "evidence"]) $(`race-${race}`).addEventListener("click", () => app.look({ race }));
  $("offset").addEventListener("input", () => app.look({ offset: Number($("offset").value) }));
  $("speed").addEventListener("input", () => app.look({ speed: Number($("speed").value) }));
  $("copy-link").addEventListener("click", () => copy(`${location.href.split("#")[0]}#${app.fragment()}`, (words) => app.notice(words)));
  $("copy-python").addEventListener("click", async () => copy(await app.source.python(app.state), (words) => app.notice(words)));
  $("retry").addEventListener("click", () => (app.state ? app.request(app.wanted ?? copyOf(app.state)) : app.begin()));
  window.addEventListener("hashchange", () => { if (location.hash.length > 1 && location.hash.slice(1) !== app.fragment()) { app.wanted = null; app.begin(); } });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { forgetTheme(); if (app.view) app.drawAll(); });
  new ResizeObserver(() => { if (app.view) app.drawLook(); }).observe($("main"));
}
