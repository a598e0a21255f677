//! Addresses of files, and which of them whoever reads a call reads with the rights of an account.
//!
//! Not here: under which names addresses stand (`rules`), what a translation makes of them (`translate`).

/// Whether Google's own API reads what this names with the rights of the account: a bucket, its own files, or no address at all. What
/// anybody can fetch is not.
#[must_use]
pub fn is_of_googles_account(address: &str) -> bool {
    let address = address.trim().to_ascii_lowercase();
    let is_public = host(&address).is_some_and(|host| !host.contains("googleapis.com"));
    !address.is_empty() && !is_public
}

/// The same of any other API: a bucket, or a file that an API keeps, such as those of Google's, which endpoints of Google's read that
/// speak other APIs. What is made of any other address is to fetch it as anybody can.
#[must_use]
pub fn is_of_account(address: &str) -> bool {
    let address = address.trim().to_ascii_lowercase();
    let is_bucket = || {
        let mut schemes = BUCKETS.iter();
        schemes.any(|scheme| {
            let rest = address.strip_prefix(scheme);
            rest.is_some_and(|rest| rest.starts_with(':'))
        })
    };
    match host(&address) {
        Some(host) => APIS.iter().any(|api| host.contains(api)),
        None => is_bucket(),
    }
}

/// Schemes that name a bucket.
const BUCKETS: [&str; 2] = ["gs", "s3"];
/// Hosts of APIs that keep files for an account, where nobody else finds any.
const APIS: [&str; 4] = [
    "generativelanguage.googleapis.com",
    "aiplatform.googleapis.com",
    "api.openai.com",
    "api.anthropic.com",
];

/// The host of what can be fetched.
fn host(address: &str) -> Option<&str> {
    let rest = address
        .strip_prefix("https://")
        .or_else(|| address.strip_prefix("http://"))?;
    rest.split(['/', '?', '#', '\\']).next()
}
