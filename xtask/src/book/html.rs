//! The book as it was built: every link and every anchor of every page leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::at;
use crate::markdown::resolved;

pub(super) struct Site {
    /// Of each page its ids and its links within the book, by its path.
    pages: BTreeMap<String, Html>,
    files: BTreeSet<String>,
}

#[derive(Default)]
struct Html {
    ids: BTreeSet<String>,
    links: Vec<String>,
}

impl Site {
    pub(super) fn read(dir: &Path) -> Result<Self, String> {
        let mut site = Self {
            pages: BTreeMap::new(),
            files: BTreeSet::new(),
        };
        let mut next: Vec<PathBuf> = vec![dir.to_owned()];
        while let Some(path) = next.pop() {
            if path.is_dir() {
                for entry in fs::read_dir(&path).map_err(at(&path))? {
                    next.push(entry.map_err(at(&path))?.path());
                }
                continue;
            }
            let name = path.strip_prefix(dir).unwrap_or(&path);
            let name = name.to_string_lossy().replace('\\', "/");
            // Shown in the place of any page that is not there: its links are from the root.
            if name.ends_with(".html") && name != "404.html" && name != "toc.html" {
                let text = fs::read_to_string(&path).map_err(at(&path))?;
                site.pages.insert(name.clone(), Html::of(&text));
            }
            site.files.insert(name);
        }
        Ok(site)
    }

    /// A line for each link that leads nowhere.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, page) in &self.pages {
            for link in &page.links {
                if let Some(says) = self.fault(name, link) {
                    faults.push(format!("{name}: links to {link}, {says}"));
                }
            }
        }
        faults
    }

    fn fault(&self, from: &str, link: &str) -> Option<&'static str> {
        let (path, anchor) = match link.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor)),
            None => (link, None),
        };
        let path = if path.is_empty() {
            from.to_owned()
        } else {
            resolved(from, path)
        };
        if !self.files.contains(&path) {
            return Some("which is not there");
        }
        let anchor = anchor.filter(|anchor| !anchor.is_empty())?;
        let ids = self.pages.get(&path).map(|page| &page.ids);
        let is_there = ids.is_some_and(|ids| ids.contains(anchor));
        (!is_there).then_some("which has no such anchor")
    }

    pub(super) fn links(&self) -> usize {
        self.pages.values().map(|page| page.links.len()).sum()
    }

    pub(super) fn links_to_anchors(&self) -> usize {
        let links = self.pages.values().flat_map(|page| &page.links);
        links.filter(|link| link.contains('#')).count()
    }

    /// Whether it can be searched.
    pub(super) fn has_search(&self) -> Result<(), String> {
        let index = self
            .files
            .iter()
            .any(|name| name.starts_with("searchindex"));
        if index {
            Ok(())
        } else {
            Err("the book has no index for its search".to_owned())
        }
    }
}

impl Html {
    fn of(text: &str) -> Self {
        let mut html = Self::default();
        // Tags alone: what the text says of `href="…"` is escaped there.
        for tag in text
            .split('<')
            .skip(1)
            .filter_map(|rest| rest.split('>').next())
        {
            for name in ["id", "name"] {
                html.ids.extend(attribute(tag, name).map(decoded));
            }
            for name in ["href", "src"] {
                let link = attribute(tag, name).map(decoded);
                html.links
                    .extend(link.filter(|link| !link.is_empty() && !link.contains(':')));
            }
        }
        html
    }
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

/// What a browser asks for: entities and percent signs of what mdBook writes.
fn decoded(text: &str) -> String {
    let text = text.replace("&amp;", "&");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let hex = more.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = more.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Html, Site, decoded};

    #[test]
    fn what_leads_nowhere_is_found() {
        let a = Html::of(
            r##"<h1 id="top"><a class="x" href="b.html#there">b</a> <a href="b.html#gone">c</a>
                <a href="../c.html">d</a> <a href="https://example.com/x">e</a> <a href="#top">f</a> &lt;a href="g"&gt;
                <img src="x.png"></h1>"##,
        );
        let b = Html::of(r#"<a name="there"></a>"#);
        let names = ["d/a.html", "d/b.html", "d/x.png"];
        let site = Site {
            pages: [("d/a.html".to_owned(), a), ("d/b.html".to_owned(), b)].into(),
            files: names.map(str::to_owned).into(),
        };
        let expected = [
            "d/a.html: links to b.html#gone, which has no such anchor",
            "d/a.html: links to ../c.html, which is not there",
        ];
        assert_eq!(site.faults(), expected);
        assert_eq!((site.links(), site.links_to_anchors()), (5, 3));
        assert!(site.has_search().is_err());
    }

    #[test]
    fn percent_signs_are_read() {
        assert_eq!(decoded("%C3%A4rger&amp;%x"), "ärger&%x");
    }
}
