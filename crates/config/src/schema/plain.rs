//! What a route of plain HTTP does with its calls beside passing them on.
//!
//! Not here: which calls it takes (`route`), what the fields become (`lower::actions`).

use crate::decode::{At, MapOf, OneOrMany, record};
use crate::scalar::{
    CorsName, EditedHeader, Flag, HeaderValue, Name, PageOrigin, Ratio, RedirectStatus,
    RemovedHeader, ReplacedPath, Span, TcpPort, UpstreamHostName, WebScheme,
};

record! {
    /// Changes of header fields of plain HTTP.
    FieldEdits {
        /// Fields that take the place of what is there, by name.
        optional set: MapOf<EditedHeader, At<HeaderValue>>,
        /// Fields that stand beside what is there, by name.
        optional add: MapOf<EditedHeader, At<HeaderValue>>,
        /// Fields that are taken out, also such as may carry a credential.
        optional remove: OneOrMany<RemovedHeader>,
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
    /// Which web pages may read answers of plain HTTP, and what they may send.
    RouteCors {
        /// Their origins, such as https://app.example, https://*.example for all names below it, or "*" for all but null.
        required origins: OneOrMany<PageOrigin>,
        /// The methods that they may send, or "*" for whatever they ask for. Default GET, HEAD and POST.
        optional methods: OneOrMany<CorsName>,
        /// The fields that they may send beside those that every page may, or "*". None unless said.
        optional headers: OneOrMany<CorsName>,
        /// The fields of an answer that they may read beside those that every page may, or "*". None unless said.
        optional expose: OneOrMany<CorsName>,
        /// Whether they may have the browser send its cookies along. Default false.
        optional credentials: At<Flag>,
        /// How long a browser remembers what it was told, in whole seconds. Default 5s.
        optional max_age: At<Span>,
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
