//! Pages that a person sees when a login ends otherwise than on the page it was for.
//!
//! Not here: what pages are made of (`admin::html`).

use admin::html::{escaped, page};
use identity::login::LoginFault;
use policy::login::LOGIN;

/// Nobody was logged in.
pub(super) fn refused(fault: &LoginFault) -> String {
    let says = format!(
        "<p>{}.</p>\n<p><a href=\"{LOGIN}\">Log in again</a></p>\n<p><code>{}</code></p>",
        escaped(&fault.to_string()),
        fault.code()
    );
    page("You are not logged in", "", &says)
}

/// The session has ended.
pub(super) fn logged_out() -> String {
    let again = format!("<p><a href=\"{LOGIN}\">Log in again</a></p>");
    page("You are logged out", "", &again)
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
