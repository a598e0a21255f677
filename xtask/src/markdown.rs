//! What the rules about pages read of Markdown: links, anchors and fenced blocks.
//!
//! Invariant: what stands in code, fenced or between backticks, is neither a link nor a heading.
//! Not here: what follows from them (`tidy::links`, `book`).

pub(crate) mod words;

/// A page, read once.
pub(crate) struct Page<'a> {
    lines: Vec<Line<'a>>,
}

/// A line with its number, and whether it is code.
struct Line<'a> {
    number: usize,
    text: &'a str,
    is_code: bool,
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block<'a> {
    /// The number of its first line, that of the fence.
    pub(crate) line: usize,
    /// What stands behind the fence: the language, and words after it.
    pub(crate) info: &'a str,
    pub(crate) text: String,
}

/// `[text](target)`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) line: usize,
    pub(crate) target: String,
}

impl<'a> Page<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let mut fence: Option<&str> = None;
        let lines = text.lines().enumerate().map(|(at, text)| {
            let here = fence_of(text);
            let is_code = fence.is_some() || here.is_some();
            match (fence, here) {
                (None, Some((marks, _))) => fence = Some(marks),
                (Some(open), Some((marks, ""))) if marks.starts_with(open) => fence = None,
                _ => {}
            }
            Line {
                number: at + 1,
                text,
                is_code,
            }
        });
        Self {
            lines: lines.collect(),
        }
    }

    /// Its fenced blocks, without the indentation of their fence.
    pub(crate) fn blocks(&self) -> Vec<Block<'a>> {
        let mut blocks = Vec::new();
        let mut open: Option<(Block<'a>, &str, usize)> = None;
        for line in self.lines.iter().filter(|line| line.is_code) {
            let here = fence_of(line.text);
            let is_end = matches!((&open, here), (Some((_, marks, _)), Some((end, ""))) if end.starts_with(marks));
            match (&mut open, here) {
                (None, Some((marks, info))) => {
                    let block = Block {
                        line: line.number,
                        info,
                        text: String::new(),
                    };
                    let indent = line.text.len() - line.text.trim_start().len();
                    open = Some((block, marks, indent));
                }
                (Some((block, _, indent)), _) if !is_end => {
                    let inner = line.text.get(*indent..).unwrap_or_default();
                    block.text.push_str(inner);
                    block.text.push('\n');
                }
                _ => blocks.extend(open.take().map(|(block, ..)| block)),
            }
        }
        blocks
    }

    /// Where its links lead, as they are written.
    pub(crate) fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (line, prose) in self.prose() {
            let targets = prose.split("](").skip(1);
            links.extend(
                targets
                    .filter_map(|rest| rest.split([')', ' ']).next())
                    .filter(|target| !target.is_empty())
                    .map(|target| Link {
                        line,
                        target: target.to_owned(),
                    }),
            );
        }
        links
    }

    /// What `#…` of a link to it may say: GitHub's names of its headings, and the ids that it gives itself.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for line in self.lines.iter().filter(|line| !line.is_code) {
            for id in ids(line.text) {
                anchors.push(id.to_owned());
            }
            if let Some(heading) = heading(line.text) {
                let slug = slug(heading);
                let numbered = (1..).map(|n| format!("{slug}-{n}"));
                let mut names = std::iter::once(slug.clone()).chain(numbered);
                anchors.extend(names.find(|name| !anchors.contains(name)));
            }
        }
        anchors
    }

    /// Lines that are no code, with code between backticks blanked. A span may run over lines of one paragraph.
    fn prose(&self) -> Vec<(usize, String)> {
        let mut prose = Vec::new();
        let mut span: Option<usize> = None;
        for line in &self.lines {
            if line.is_code || line.text.trim().is_empty() {
                span = None;
                continue;
            }
            prose.push((line.number, without_code(line.text, &mut span)));
        }
        prose
    }
}

/// The marks and the info of a line that opens or ends a fence.
fn fence_of(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start();
    let length = text.len() - text.trim_start_matches('`').len();
    let (marks, info) = text.split_at(length);
    let info = info.trim();
    (length >= 3 && !info.contains('`')).then_some((marks, info))
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && text.starts_with(' ')).then(|| text.trim())
}

/// `<a id="…">` of a line.
fn ids(line: &str) -> impl Iterator<Item = &str> {
    let tags = line.split("<a id=\"").skip(1);
    tags.filter_map(|rest| rest.split('"').next())
}

/// The file that a path in a file leads to, such as a link of a page, from the root that both have.
pub(crate) fn resolved(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = if link.starts_with('/') {
        Vec::new()
    } else {
        from.split('/').collect()
    };
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// GitHub's name of a heading: lower case, letters, digits, `-` and `_` kept, spaces to `-`, all else left out.
pub(crate) fn slug(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    // Of a link its text counts alone.
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let kept = text.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// The line with code spans blanked; `span` is the number of backticks of one that runs on.
fn without_code(line: &str, span: &mut Option<usize>) -> String {
    let mut out = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let ticks = rest.len() - rest.trim_start_matches('`').len();
        let text = rest.trim_start_matches('`');
        let next = text.find('`').unwrap_or(text.len());
        let (inside, after) = text.split_at(next);
        match (*span, ticks) {
            (_, 0) => {}
            (None, ticks) => *span = Some(ticks),
            (Some(open), ticks) if open == ticks => *span = None,
            (Some(_), _) => {}
        }
        out.push_str(if span.is_some() { " " } else { inside });
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests;
