// Tells the values of all lines of a chart at the place that is pointed at, or stepped to by the arrow keys. The page is
// whole without it.
'use strict';
for (const svg of document.querySelectorAll('svg.chart')) {
  const { left, right, from, to, x: what, log } = svg.dataset;
  const edge = [Number(left), Number(right)];
  const scale = log === undefined ? Number : Math.log10;
  const ends = [scale(Number(from)), scale(Number(to))];
  const place = (x) => edge[0] + ((scale(x) - ends[0]) / (ends[1] - ends[0])) * (edge[1] - edge[0]);
  const lines = [...svg.querySelectorAll('g.line')].map((g) => ({
    name: g.dataset.name,
    mark: g.getAttribute('class').split(' ')[0],
    points: g.dataset.values.trim().split(' ').map((pair) => pair.split(',')),
  }));
  const all = [...new Set(lines.flatMap((line) => line.points.map(([x]) => Number(x))))].sort((a, b) => a - b);
  const rule = document.createElementNS('http://www.w3.org/2000/svg', 'line');
  rule.setAttribute('class', 'rule');
  rule.setAttribute('y1', '34');
  rule.setAttribute('y2', '278');
  const box = document.createElement('div');
  box.className = 'values';
  let at = 0;
  const show = () => {
    const x = all[at];
    if (x === undefined) return;
    rule.setAttribute('x1', place(x));
    rule.setAttribute('x2', place(x));
    svg.append(rule);
    box.replaceChildren();
    const head = document.createElement('b');
    head.textContent = `${x.toLocaleString('en')} · ${what}`;
    box.append(head);
    for (const { name, mark, points } of lines) {
      const near = points.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a));
      const row = document.createElement('span');
      row.className = mark;
      row.textContent = `${name}: ${near[1]}`;
      box.append(row);
    }
    svg.parentElement.append(box);
    const share = place(x) / 760;
    box.style.left = share < 0.5 ? `${share * 100 + 2}%` : 'auto';
    box.style.right = share < 0.5 ? 'auto' : `${(1 - share) * 100 + 2}%`;
  };
  const hide = () => {
    rule.remove();
    box.remove();
  };
  svg.addEventListener('pointermove', (event) => {
    const bounds = svg.getBoundingClientRect();
    const across = ((event.clientX - bounds.left) / bounds.width) * 760;
    at = 0;
    all.forEach((x, i) => {
      if (Math.abs(place(x) - across) < Math.abs(place(all[at]) - across)) at = i;
    });
    show();
  });
  svg.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    at = Math.min(Math.max(at + step, 0), all.length - 1);
    show();
  });
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('blur', hide);
}
