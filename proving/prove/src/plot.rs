//! What all plots as SVG share: axes, their grid and their ticks, and text that is nothing but text.
//!
//! Invariant: a plot fetches nothing and needs no script; its colours are those of the page that it stands in.
//! Not here: what is drawn within the axes (`race::page::plot`, `report::chart`).

mod scale;

use std::fmt::Write;

pub(crate) use scale::{Scale, short};

/// The room of a plot: its size and its margins, in units of the drawing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Room {
    /// The place across of a share of the axis, 0 at its beginning.
    pub(crate) fn across(&self, share: f64) -> f64 {
        self.left + share * (self.width - self.left - self.right)
    }

    /// The place down of a share of the axis, 0 at the bottom.
    pub(crate) fn down(&self, share: f64) -> f64 {
        self.height - self.bottom - share * (self.height - self.top - self.bottom)
    }

    /// Lines of the grid, each with its value to the left.
    pub(crate) fn rows(&self, out: &mut String, y: &Scale) {
        let end = self.width - self.right;
        for tick in y.ticks() {
            let at = self.down(y.place(tick));
            let _ = writeln!(
                out,
                r#"<line class="grid" x1="{}" x2="{end:.1}" y1="{at:.1}" y2="{at:.1}"/><text class="end" x="{:.1}" y="{:.1}">{}</text>"#,
                self.left,
                self.left - 6.0,
                at + 4.0,
                short(tick)
            );
        }
    }

    /// Values below the axis, and what they are of.
    pub(crate) fn columns(&self, out: &mut String, x: &Scale, title: &str) {
        let below = self.height - self.bottom;
        for tick in x.ticks() {
            let _ = writeln!(
                out,
                r#"<text class="mid" x="{:.1}" y="{:.1}">{}</text>"#,
                self.across(x.place(tick)),
                below + 16.0,
                short(tick)
            );
        }
        let _ = writeln!(
            out,
            r#"<text class="mid title" x="{:.1}" y="{:.1}">{}</text>"#,
            self.width / 2.0,
            self.height - 4.0,
            escape(title)
        );
    }
}

/// A text as HTML shows it, in elements and in quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
