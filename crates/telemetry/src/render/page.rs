//! Lines of the Prometheus text format.
//!
//! Invariant: a label value or help text, whatever it holds, cannot end its line or its quotes.
//! Not here: which lines there are (`render`).

use std::fmt::{Display, Write as _};

use crate::histogram::{Histogram, Scale, Unit};

/// A page being written.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    /// Starts a family.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.text("# HELP ").text(name).text(" ");
        self.escaped(help, false);
        self.text("\n# TYPE ").text(name).text(" ").text(kind);
        self.text("\n");
    }

    /// One sample of the family.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.line(name, "", labels, None, &value);
    }

    /// The samples of a histogram.
    pub(super) fn histogram<const B: usize>(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        histogram: &Histogram<B>,
        scale: &Scale<B>,
    ) {
        for (bound, n) in scale.bounds.into_iter().zip(histogram.cumulative()) {
            self.line(name, "_bucket", labels, Some(&shown(scale.unit, bound)), &n);
        }
        let count = histogram.count();
        self.line(name, "_bucket", labels, Some("+Inf"), &count);
        let sum = shown(scale.unit, histogram.sum());
        self.line(name, "_sum", labels, None, &sum);
        self.line(name, "_count", labels, None, &count);
    }

    /// The whole page.
    pub(super) fn finish(self) -> String {
        self.0
    }

    fn line(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &[(&str, &str)],
        le: Option<&str>,
        value: &dyn Display,
    ) {
        self.text(name).text(suffix);
        let le = le.map(|bound| ("le", bound));
        let mut open = '{';
        for (label, text) in labels.iter().copied().chain(le) {
            self.0.push(open);
            self.text(label).text("=\"");
            self.escaped(text, true);
            self.text("\"");
            open = ',';
        }
        if open == ',' {
            self.0.push('}');
        }
        write!(self.0, " {value}").expect("writing to a String cannot fail");
        self.text("\n");
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.0.push_str(text);
        self
    }

    fn escaped(&mut self, text: &str, quoted: bool) {
        for c in text.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '"' if quoted => self.0.push_str("\\\""),
                c => self.0.push(c),
            }
        }
    }
}

/// A number in its unit, exactly.
pub(super) fn shown(unit: Unit, value: u64) -> String {
    match unit {
        Unit::Tokens => value.to_string(),
        Unit::Seconds => {
            let (whole, nanos) = (value / 1_000_000_000, value % 1_000_000_000);
            let text = format!("{whole}.{nanos:09}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}
