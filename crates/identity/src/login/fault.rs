//! Why nobody was logged in.
//!
//! Invariant: a code stays what it is. What a provider or a browser wrote is cut, and holds no control characters.
//! Not here: pages (the host, which escapes it).

use super::id_token::IdTokenFault;

/// Most characters of what a provider says that are repeated.
const SAID_MAX: usize = 200;

/// Why nobody was logged in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginFault {
    /// A member stands twice in the query of a login or a callback, or it is not percent-encoded text.
    #[error("the address is damaged: a member of its query stands twice, or is no text")]
    Query,
    /// The path to go back to leads elsewhere, or is too long.
    #[error("the path to return to is not a path of this gate")]
    ReturnPath,
    /// The browser keeps no state, or none of this gate's.
    #[error("this browser has not begun to log in here, or too long ago")]
    NoState,
    /// The login began too long ago.
    #[error("the login took longer than ten minutes")]
    Late,
    /// The state is of another login: of another browser, or of another window of this one.
    #[error("the answer belongs to another login than the one that this browser began last")]
    OtherState,
    /// The answer names another issuer, or none where it has to.
    #[error("the answer does not come from the provider that was asked")]
    OtherIssuer,
    /// The provider refused.
    #[error("the provider refused: {error}{}", description.as_ref().map_or(String::new(), |text| format!(" ({text})")))]
    Provider {
        /// Its code.
        error: String,
        /// What it says of it.
        description: Option<String>,
    },
    /// There is neither a code nor an error.
    #[error("the answer holds no code")]
    NoCode,
    /// The provider cannot be asked; why, for the log.
    #[error("the provider cannot be asked now")]
    Unavailable(String),
    /// The provider gave nothing for the code; why, for the log.
    #[error("the provider did not accept the login; it may have been used already")]
    Code(String),
    /// Too many codes of this login or this address were of no use; which of the two, for the log.
    #[error("too many logins of this browser, or of others at its address, failed a moment ago")]
    TooOften(String),
    /// What it gave is of no use.
    #[error("the provider's answer failed its checks")]
    IdToken(#[from] IdTokenFault),
    /// What its user endpoint says names nobody; the member that should.
    #[error("the provider does not say who you are")]
    Unnamed(String),
    /// It says more than a cookie holds; in words.
    #[error("the provider's claims about you are larger than a session can hold")]
    TooLarge(String),
}

impl LoginFault {
    /// With what a provider says, as far as it may be shown.
    pub(super) fn provider(error: &[u8], description: Option<&[u8]>) -> Self {
        Self::Provider {
            error: shown(error),
            description: description.map(shown).filter(|text| !text.is_empty()),
        }
    }

    /// A short name that stays, for logs and pages.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Query => "login_query_invalid",
            Self::ReturnPath => "login_return_invalid",
            Self::NoState => "login_not_begun",
            Self::Late => "login_expired",
            Self::OtherState => "login_state_mismatch",
            Self::OtherIssuer => "login_issuer_mismatch",
            Self::Provider { .. } => "login_refused",
            Self::NoCode => "login_code_missing",
            Self::Unavailable(_) => "login_unavailable",
            Self::Code(_) => "login_code_refused",
            Self::TooOften(_) => "login_too_often",
            Self::IdToken(_) => "login_token_invalid",
            Self::Unnamed(_) => "login_user_unnamed",
            Self::TooLarge(_) => "login_session_too_large",
        }
    }

    /// What the log says beyond what the browser is told.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Unavailable(why)
            | Self::Code(why)
            | Self::TooOften(why)
            | Self::TooLarge(why) => Some(why.clone()),
            Self::IdToken(why) => Some(why.to_string()),
            Self::Unnamed(member) => Some(format!(
                "the user endpoint's answer has no `{member}` that is a text of 1 to 255 bytes or a whole number: see `oauth.subject_claim`"
            )),
            _ => None,
        }
    }

    /// Whether nobody is to blame but whoever could not be asked.
    #[must_use]
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// What was written elsewhere, cut, and without what would not be seen or would be taken for something else.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let plain = text.chars().filter(|c| !c.is_control());
    plain.take(SAID_MAX).collect()
}
