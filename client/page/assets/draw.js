// Drawings as SVG. Text from a server becomes text nodes only.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shape(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Published fidelity by epsilon, with its 95 % intervals, and a mark at the chosen one.
export function drawCurve(svg, plans, chosen) {
  const left = 36, right = 470, top = 10, bottom = 120;
  const known = plans.filter((plan) => plan.cells);
  svg.replaceChildren();
  svg.toggleAttribute("hidden", known.length < 2);
  if (known.length < 2) return;
  const low = Math.log(known[0].epsilon), high = Math.log(known.at(-1).epsilon);
  const x = (plan) => left + (right - left) * (Math.log(plan.epsilon) - low) / (high - low);
  const y = (share) => bottom - (bottom - top) * share;
  const points = (key, list) => list.map((plan) => `${x(plan)},${y(plan.cells.fidelity[key])}`);
  svg.append(
    ...[0, 0.5, 1].flatMap((share) => [
      shape("line", {x1: left, x2: right, y1: y(share), y2: y(share), class: "grid"}),
      shape("text", {x: left - 6, y: y(share) + 4, "text-anchor": "end"}, String(share))]),
    ...known.filter((_, i) => i % 3 === 0).map((plan) =>
      shape("text", {x: x(plan), y: bottom + 20, "text-anchor": "middle"}, String(plan.epsilon))),
    shape("polygon", {class: "band",
                      points: [...points("low", known), ...points("high", known.toReversed())].join(" ")}),
    shape("polyline", {class: "line", points: points("value", known).join(" ")}));
  if (known.includes(chosen)) {
    svg.append(shape("line", {x1: x(chosen), x2: x(chosen), y1: top, y2: bottom, class: "chosen"}),
               shape("circle", {cx: x(chosen), cy: y(chosen.cells.fidelity.value), r: 5, class: "own"}));
  }
}

function panel(sent, svg, caption) {
  return element("figure", {class: sent ? "sent" : "compared"},
                 element("h3", {}, sent ? "Sent" : "Not sent, for comparison"), svg,
                 element("figcaption", {}, caption));
}

// One frame for all releases, so that they can be compared.
export function rowPanels(seen) {
  const all = [...seen.anchors, ...seen.releases.flatMap((release) => release.points)];
  const range = (axis) => {
    const values = all.map((point) => point[axis]);
    return [Math.min(...values), Math.max(...values)];
  };
  const x = range(0), y = range(1);
  const unit = 280 / Math.max(x[1] - x[0], y[1] - y[0], 1e-300);
  const dot = (point, r, name) => shape("circle", {
    cx: 160 + unit * (point[0] - (x[0] + x[1]) / 2), cy: 150 - unit * (point[1] - (y[0] + y[1]) / 2), r,
    class: name});
  return seen.releases.map((release, i) => {
    const whose = i === 0 ? `your picture, read as ${release.name}` : `an anchor of ${release.name}`;
    const caption = `The noisy rows for ${whose}: its row is ringed here, not for the server.`;
    return panel(i === 0, shape("svg", {viewBox: "0 0 320 300", role: "img", "aria-label": caption},
      ...seen.anchors.map((point) => dot(point, 3, "anchor")),
      ...release.points.slice(seen.slots).map((point) => dot(point, 2, "noisy")),
      ...release.points.slice(0, seen.slots).map((point) => dot(point, 4, "slot")),
      dot(release.points[release.own], 8, "ring")), caption);
  });
}

export function cellPanels(seen) {
  const across = Math.ceil(Math.sqrt(seen.cells)), side = 300 / across;
  const many = seen.cells > 100;
  return seen.releases.map((release, i) => {
    const whose = i === 0 ? "your picture" : "a public point";
    const caption = `For ${whose} in cell ${release.own} (dashed), the request names cell `
      + `${release.cells.join(", ")}.`;
    const squares = Array.from({length: seen.cells}, (_, cell) => {
      const at = {x: (cell % across) * side + 2, y: Math.floor(cell / across) * side + 2};
      const asked = release.cells.includes(cell), own = cell === release.own;
      return shape("g", {},
        shape("rect", {...at, width: side - 4, height: side - 4,
                       class: `cell${asked ? " asked" : ""}${own ? " ring" : ""}`}),
        ...(many ? [] : [shape("text", {x: at.x + side / 2 - 2, y: at.y + side / 2 + 2, "text-anchor": "middle",
                                        class: asked ? "asked-text" : ""}, String(cell))]));
    });
    const height = Math.ceil(seen.cells / across) * side;
    return panel(i === 0, shape("svg", {viewBox: `0 0 300 ${height}`, role: "img", "aria-label": caption},
                                ...squares), caption);
  });
}
