//! What pages for people are made of.
//!
//! Invariant: whatever others wrote is text on a page, and never markup.
//! Not here: what they say.

/// A page of this title with this markup below it; `style` is CSS.
#[must_use]
pub fn page(title: &str, style: &str, markup: &str) -> String {
    let style = match style {
        "" => String::new(),
        style => format!("<style>{style}</style>\n"),
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n{style}<h1>{title}</h1>\n{markup}\n"
    )
}

/// A text as markup.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut to, c| {
        match c {
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            '&' => to.push_str("&amp;"),
            '"' => to.push_str("&quot;"),
            '\'' => to.push_str("&#39;"),
            _ => to.push(c),
        }
        to
    })
}
