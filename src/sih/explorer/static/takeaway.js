// Taking things away: a panel as SVG or PNG, a link, Python.

import { currentTheme } from "./colour.js";
import { drawing, tag, text } from "./svg.js";

// A panel as one SVG: what is SVG in it as it is, canvases as pictures, captions and names as text, each in its place.
function panelSvg(panel) {
  const theme = currentTheme();
  const body = panel.getBoundingClientRect();
  const title = panel.querySelector("h2").textContent;
  const parts = [tag("rect", { width: body.width, height: body.height, fill: theme.panel }), text(20, 30, title, { fill: theme.ink, "font-size": 15, "font-weight": 620 })];
  const place = (node) => {
    const box = node.getBoundingClientRect();
    return { x: box.left - body.left, y: box.top - body.top, width: box.width, height: box.height };
  };
  for (const svg of panel.querySelectorAll(".drawing svg")) {
    const { x, y } = place(svg);
    parts.push(tag("g", { transform: `translate(${x} ${y})` }, svg.innerHTML));
  }
  for (const canvas of panel.querySelectorAll("canvas")) {
    parts.push(tag("image", { ...place(canvas), href: canvas.toDataURL("image/png"), "image-rendering": "pixelated" }));
  }
  for (const words of panel.querySelectorAll("figcaption button, .layer > p, .block code, h3, h4")) {
    const { x, y, height } = place(words);
    const spoken = [...words.childNodes].map((part) => part.textContent).join("  ");
    parts.push(text(x, y + height / 2 + 4, spoken, { fill: theme.soft, "font-size": 12 }));
  }
  return drawing(body.width, Math.round(body.height), parts.join(""));
}

async function panelPng(panel) {
  const svg = panelSvg(panel);
  const picture = new Image();
  picture.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = picture.width * 2;
  canvas.height = picture.height * 2;
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(picture.src);
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function addSaveButtons(panel, element) {
  const name = panel.id.replace("-panel", "");
  const title = panel.querySelector("h2").textContent;
  const group = element("div", "save", { role: "group", "aria-label": `Save ${title}` });
  const svg = element("button", "", { type: "button", "aria-label": `Save ${title} as SVG` }, "SVG");
  const png = element("button", "", { type: "button", "aria-label": `Save ${title} as PNG` }, "PNG");
  svg.addEventListener("click", () => download(new Blob([panelSvg(panel)], { type: "image/svg+xml" }), `sih-${name}.svg`));
  png.addEventListener("click", async () => download(await panelPng(panel), `sih-${name}.png`));
  group.append(svg, png);
  panel.querySelector("header").append(group);
}

// To the clipboard; where the browser does not let us, into a box to copy from.
export async function copy(words, notice) {
  try {
    await navigator.clipboard.writeText(words);
    notice("Copied.");
  } catch {
    const dialog = document.getElementById("text-dialog");
    dialog.querySelector("textarea").value = words;
    dialog.showModal();
    dialog.querySelector("textarea").select();
  }
}
