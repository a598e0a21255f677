//! How single values are written.
//!
//! Invariant: a value that reads is in range; nothing later has to check it again.
//! Not here: addresses of backends (`target`).

pub(crate) use actions::{
    AltName, EditedHeader, RedirectStatus, RemovedHeader, ReplacedPath, TcpPort, UpstreamHostName,
    WebScheme,
};
pub(crate) use admin::AdminRole;
pub(crate) use call::{Call, Flag};
pub(crate) use catalogue::{CatalogueAt, Day, Page};
pub(crate) use description::DescriptionAt;
pub use header::may_name_callers;
pub(crate) use header::{CredentialHeader, IdentityHeader, PassedHeader, Scheme, SecretHeader};
pub(crate) use network::{Address, Network};
pub(crate) use number::{
    Age, Amount, Brief, Charge, Count, Decimal, Hold, Money, Percent, PricePer, Ratio, Size, Span,
    Status,
};
pub(crate) use period::Zone;
pub use plain::is_tool_path;
pub(crate) use plain::{MatchedHeader, MatchedHost, MatchedText, MethodName, Path, ToolPath};
pub(crate) use query::{QueryName, encoded};
pub(crate) use redirect_url::RedirectUrl;
pub(crate) use source::{AccessKeyId, File, Inline, LogTarget, SecretFile, Variable};
pub(crate) use template::Template;
pub(crate) use text::{
    Argument, Beta, Claim, CorsName, Currency, EnvironmentName, Expression, HeaderValue,
    ListenerName, Model, Name, NameGlob, Pattern, QueryValue, Scope, ServerName, Tag, Text,
    ToolDigest, ToolName,
};
pub(crate) use web::{Host, Origin, PageOrigin};
pub(crate) use word::{
    Algorithm, Apart, ApiHeader, AskUsage, BilledBy, Billing, BuiltIn, CallUser, ClientAuth,
    ClientCertificates, ContentFormat, Dialect, Every, FailsOpen, FilesApi, JwtBearer, ListTools,
    McpPrefix, OnToolChange, OtlpProtocol, Protocol, ProxyProtocol, RecordUser, Recorded, Serves,
    SystemNames, ToolMethod, Trust, Whose, Window, listed, words,
};

mod actions;
mod admin;
mod call;
mod catalogue;
mod description;
mod header;
mod network;
mod number;
mod period;
mod plain;
mod query;
mod redirect_url;
mod source;
mod template;
mod text;
mod web;
mod word;

#[cfg(test)]
mod tests;
