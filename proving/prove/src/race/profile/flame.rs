//! A flame graph as SVG: a box for each call, as wide as the CPU was found in it.
//!
//! Invariant: boxes of one row never overlap, and a box lies within its caller's; boxes too narrow
//! to be seen are left out, their room stays empty.
//! Not here: scripts; the whole name and share of a box are shown by hovering.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::fold::{Frame, Stacks};

#[cfg(test)]
mod tests;

const WIDTH: f64 = 1400.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 44.0;
const NARROWEST: f64 = 0.4;
const LETTER: f64 = 6.3;

#[derive(Default)]
struct Node {
    count: u64,
    calls: BTreeMap<Frame, Node>,
}

/// The graph, with `title` above it.
pub(super) fn draw(title: &str, stacks: &Stacks) -> String {
    let mut root = Node::default();
    for (stack, count) in stacks {
        root.add(stack, *count);
    }
    let depth = stacks.keys().map(Vec::len).max().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "stacks of a few hundred frames")]
    let height = HEAD + depth as f64 * ROW + 8.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"monospace\" font-size=\"11\">\n<style>\
         svg {{ background: #fff; color: #1c2126; }} text {{ fill: currentColor; }}\
         .u {{ fill: #f2a65a; }} .k {{ fill: #8fb8de; }} rect {{ stroke: #fff; stroke-width: .5; }}\
         g text {{ fill: #1c2126; }}\
         @media (prefers-color-scheme: dark) {{ svg {{ background: #14181c; color: #e6eaed; }} rect {{ stroke: #14181c; }} }}\
         </style>\n<text x=\"8\" y=\"18\" font-size=\"14\">{}</text>\n\
         <text x=\"8\" y=\"34\">{} samples; orange: the program, blue: the kernel</text>\n",
        escape(title),
        root.count
    );
    let drawing = Drawing {
        total: root.count,
        bottom: height - 8.0,
    };
    drawing.calls(&mut out, &root, 0.0, 0);
    out.push_str("</svg>\n");
    out
}

impl Node {
    fn add(&mut self, stack: &[Frame], count: u64) {
        let mut at = self;
        at.count += count;
        for frame in stack {
            at = at.calls.entry(frame.clone()).or_default();
            at.count += count;
        }
    }
}

struct Drawing {
    total: u64,
    bottom: f64,
}

impl Drawing {
    /// The boxes of what `node` calls, from `x` on, `depth` rows above the bottom.
    fn calls(&self, out: &mut String, node: &Node, x: f64, depth: u32) {
        let mut x = x;
        for (frame, call) in &node.calls {
            let width = self.share(call.count) * WIDTH;
            if width >= NARROWEST {
                self.call(out, frame, call, (x, width), depth);
                self.calls(out, call, x, depth + 1);
            }
            x += width;
        }
    }

    fn call(
        &self,
        out: &mut String,
        frame: &Frame,
        call: &Node,
        (x, width): (f64, f64),
        depth: u32,
    ) {
        let y = self.bottom - f64::from(depth + 1) * ROW;
        let class = if frame.kernel { "k" } else { "u" };
        let percent = self.share(call.count) * 100.0;
        let _ = write!(
            out,
            "<g><title>{} — {} samples, {percent:.2} %</title><rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{ROW}\"/>",
            escape(&frame.name),
            call.count,
        );
        let text = fitting(&frame.name, width - 4.0);
        if !text.is_empty() {
            let _ = write!(
                out,
                "<text x=\"{:.2}\" y=\"{:.1}\">{}</text>",
                x + 2.0,
                y + 12.0,
                escape(&text)
            );
        }
        out.push_str("</g>\n");
    }

    #[expect(clippy::cast_precision_loss, reason = "samples below 2^53")]
    fn share(&self, count: u64) -> f64 {
        count as f64 / self.total.max(1) as f64
    }
}

/// As much of `name` as fits, with two dots where it was cut; nothing where too little would.
fn fitting(name: &str, room: f64) -> String {
    let fits = name.chars().scan(0.0, |used, _| {
        *used += LETTER;
        (*used <= room).then_some(())
    });
    let fits = fits.count();
    if fits >= name.chars().count() {
        name.to_owned()
    } else if fits < 4 {
        String::new()
    } else {
        name.chars().take(fits - 2).chain("..".chars()).collect()
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
