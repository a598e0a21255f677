//! What a route of plain HTTP does with its calls beside passing them on.
//!
//! Not here: which calls it takes (`route`), what the fields become (`lower::actions`).

use crate::decode::{At, MapOf, OneOrMany, record};
use crate::scalar::{
    EditedHeader, HeaderValue, Name, Ratio, RedirectStatus, ReplacedPath, TcpPort,
    UpstreamHostName, WebScheme,
};

record! {
    /// Changes of header fields of plain HTTP.
    FieldEdits {
        /// Fields that take the place of what is there, by name.
        optional set: MapOf<EditedHeader, At<HeaderValue>>,
        /// Fields that stand beside what is there, by name.
        optional add: MapOf<EditedHeader, At<HeaderValue>>,
        /// Fields that are taken out.
        optional remove: OneOrMany<EditedHeader>,
    }
}

record! {
    /// Another path for calls of plain HTTP.
    Rewrite {
        /// The path that takes the place of the whole one.
        optional path: At<ReplacedPath>,
        /// What takes the place of the beginning that `match.path` says, which is one path then.
        optional prefix: At<ReplacedPath>,
    }
}

record! {
    /// Who sees copies of calls of plain HTTP; the answers are not read.
    Mirror {
        /// The backend, of plain HTTP.
        required backend: At<Name>,
        /// The share of calls that it sees, 0 to 1. Default 1.
        optional share: At<Ratio>,
    }
}

record! {
    /// Where calls of plain HTTP are sent instead: the answer is a redirect.
    Redirect {
        /// http or https; as the call came unless said.
        optional scheme: At<WebScheme>,
        /// The host; the call's unless said.
        optional host: At<UpstreamHostName>,
        /// The port; that of the scheme, or the one by which the call came, unless said.
        optional port: At<TcpPort>,
        /// The path that takes the place of the whole one.
        optional path: At<ReplacedPath>,
        /// What takes the place of the beginning that `match.path` says, which is one path then.
        optional prefix: At<ReplacedPath>,
        /// 301, 302, 303, 307 or 308. Default 302.
        optional status: At<RedirectStatus>,
    }
}
