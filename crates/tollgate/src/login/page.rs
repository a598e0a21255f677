//! Pages that a person sees when a login ends otherwise than on the page it was for.
//!
//! Invariant: whatever others wrote is text on it, and never markup.

use identity::login::LoginFault;

/// Nobody was logged in.
pub(super) fn refused(fault: &LoginFault) -> String {
    let says = format!(
        "<p>{}.</p>\n<p><a href=\"/login\">Log in again</a></p>\n<p><code>{}</code></p>",
        escaped(&fault.to_string()),
        fault.code()
    );
    page("You are not logged in", &says)
}

/// The session has ended.
pub(super) fn logged_out() -> String {
    page(
        "You are logged out",
        "<p><a href=\"/login\">Log in again</a></p>",
    )
}

fn page(title: &str, says: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<h1>{title}</h1>\n{says}\n"
    )
}

fn escaped(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_says_is_no_markup() {
        let fault = LoginFault::Provider {
            error: "<script>alert(1)</script>".to_owned(),
            description: Some("\"'&".to_owned()),
        };
        let page = refused(&fault);
        assert!(!page.contains("<script>"), "{page}");
        assert!(
            page.contains("&lt;script&gt;alert(1)&lt;/script&gt; (&quot;&#39;&amp;)"),
            "{page}"
        );
    }
}
