"use strict";
// A plot of lines as one that can be zoomed and read off, in place of its picture. The values are in
// the page beside the picture; the picture stays what is printed, and what is read aloud.
for (const figure of document.querySelectorAll("figure:has(> script.points)")) {
  const plot = JSON.parse(figure.querySelector("script.points").textContent);
  const sheet = figure.querySelector(".sheet");
  const pictures = [...sheet.querySelectorAll("svg")];
  const button = document.createElement("button"), help = document.createElement("span");
  const bar = document.createElement("div");
  bar.className = "zoom";
  button.type = "button";
  button.textContent = "Zoom";
  button.ariaPressed = "false";
  help.hidden = true;
  help.textContent = "Drag to zoom, double click for all. Keys: + and -, arrows, 0 for all, Escape.";
  bar.append(button, help);
  figure.append(bar);
  let chart = null, watcher = null;

  const close = () => {
    watcher?.disconnect();
    chart?.destroy();
    chart = null;
    sheet.querySelector(".canvas")?.remove();
    for (const picture of pictures) picture.style.display = "";
    help.hidden = true;
    button.ariaPressed = "false";
    button.textContent = "Zoom";
  };

  const open = () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--soft"), grid = style.getPropertyValue("--faint");
    const place = document.createElement("div");
    place.className = "canvas";
    place.tabIndex = 0;
    place.role = "group";
    place.ariaLabel = `${plot.title}: plus and minus zoom, arrows move, 0 shows all, Escape closes`;
    for (const picture of pictures) picture.style.display = "none";
    sheet.append(place);
    // One column of places for all series, and of each its value, low and high.
    const places = [...new Set(plot.series.flatMap((one) => one.points.map((point) => point[0])))].sort((a, b) => a - b);
    const at = new Map(places.map((x, index) => [x, index]));
    const data = [places], series = [{ label: plot.x }], bands = [];
    const column = (one, field) => {
      const values = Array(places.length).fill(null);
      for (const point of one.points) {
        const value = point[field];
        values[at.get(point[0])] = plot.log > 0 && !(value > 0) ? null : value;
      }
      data.push(values);
      return data.length - 1;
    };
    for (const one of plot.series) {
      const color = dark ? one.dark : one.light;
      const origin = { published: "published", measured: "measured" }[one.origin];
      column(one, 1);
      series.push({
        label: origin ? `${one.name}, ${origin}` : one.name,
        stroke: color, width: 2, spanGaps: true,
        dash: one.origin === "measured" ? [8, 6] : undefined,
        paths: one.origin === "published" ? () => null : undefined,
        points: { show: one.origin !== "simulated" || one.points.length < 80, size: 7, fill: one.origin === "published" ? style.getPropertyValue("--page") : color },
        value: (_, value) => (value === null || value === undefined ? "–" : Number(value.toPrecision(5)).toLocaleString("en")),
      });
      if (one.points.some((point) => point[2] < point[3])) {
        const high = column(one, 3), low = column(one, 2);
        for (let edge = 0; edge < 2; edge++) series.push({ label: "", stroke: "transparent", points: { show: false }, class: "edge" });
        bands.push({ series: [high, low], fill: color + "2e" });
      }
    }
    const scale = (log) => (log ? { distr: 3, log } : {});
    // What is along the axes is written beside them already.
    const axis = { stroke: ink, grid: { stroke: grid }, ticks: { stroke: grid } };
    const size = () => ({ width: sheet.clientWidth, height: Math.max(260, Math.round(sheet.clientWidth * 0.5)) });
    chart = new uPlot({
      ...size(), series, bands,
      scales: { x: { time: false, ...scale(plot.xlog) }, y: scale(plot.log) },
      axes: [axis, { ...axis, size: 64 }],
      cursor: { drag: { x: true, y: false } },
    }, data, place);
    for (const row of chart.root.querySelectorAll(".edge")) row.style.display = "none";
    watcher = new ResizeObserver(() => chart?.setSize(size()));
    watcher.observe(sheet);
    const show = (from, to) => chart.setScale("x", { min: Math.max(places[0], from), max: Math.min(places.at(-1), to) });
    place.addEventListener("keydown", (event) => {
      const { min, max } = chart.scales.x, span = max - min;
      const moves = {
        "+": [min + span / 4, max - span / 4], "=": [min + span / 4, max - span / 4],
        "-": [min - span / 2, max + span / 2],
        ArrowLeft: [min - span / 4, max - span / 4], ArrowRight: [min + span / 4, max + span / 4],
        "0": [places[0], places.at(-1)],
      };
      if (event.key === "Escape") {
        close();
        button.focus();
      } else if (moves[event.key]) {
        event.preventDefault();
        show(...moves[event.key]);
      }
    });
    help.hidden = false;
    button.ariaPressed = "true";
    button.textContent = "Picture";
    place.focus();
  };

  button.addEventListener("click", () => (chart ? close() : open()));
  addEventListener("beforeprint", close);
}
