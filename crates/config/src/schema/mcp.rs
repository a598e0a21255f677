//! `mcp`: servers of tools behind one address.
//!
//! Not here: what they become (`lower::mcp`), what of a backend a server has (`backend`).

use super::route::Limit;
use super::{Backend, Bearer};
use crate::decode::{At, ListOf, MapOf, OneOrList, OneOrMany, ShortOrFull, record};
use crate::scalar::{
    Argument, Brief, DescriptionAt, EnvironmentName, Expression, File, IdentityHeader, Inline,
    ListTools, McpPrefix, Name, NameGlob, OnToolChange, ServerName, Span, Text, ToolDigest,
    ToolMethod, ToolName, ToolPath,
};
use crate::target::Target;

record! {
    /// Servers of tools (the Model Context Protocol) behind one address, at /mcp or the paths of their routes.
    Mcp {
        /// The servers, by the name that their tools begin with: of server github the tool search is github__search.
        required servers: MapOf<ServerName, McpServer>,
        /// Who may use which of them; a workload is in one route of each path at most.
        required routes: ListOf<McpRoute>,
        /// What sessions are sealed with, 32 bytes or more; the same for all gates behind one address.
        required secret: Bearer,
        /// What they were sealed with before.
        optional previous_secret: Bearer,
        /// When the name of a tool or a prompt, or a URI, begins with its server's: always, never (a name that two servers have stands for neither) or on_conflict. Default always.
        optional prefix: At<McpPrefix>,
        /// How long a session is good: 1m to 30d. Default 1d.
        optional session: At<Span>,
        /// How long a server's lists are kept, 1h at most. Default 30s.
        optional lists: At<Brief>,
        /// How long one server is waited for where several are asked, 1h at most. Default 10s.
        optional within: At<Brief>,
        /// What clients learn of who gives them tokens (RFC 9728); nothing unless said.
        optional oauth: McpOAuth,
    }
}

record! {
    /// What clients learn of who gives them tokens.
    McpOAuth {
        /// The address of servers of tools as clients write it, such as https://gate.example/mcp; tokens are for it.
        required resource: At<Target>,
        /// Who gives tokens: issuers, as addresses.
        required authorization_servers: OneOrMany<Target>,
        /// What a token may be asked to allow.
        optional scopes: OneOrMany<Text>,
    }
}

record! {
    /// A server of tools, over Streamable HTTP: its `url`, credential and connections as a backend has them; or a `command`; or an HTTP API by its `openapi`.
    McpServer of target: Backend {
        /// The program that is the server, over stdio: one process for each session. In place of a `url`.
        optional command: At<Argument>,
        /// What it is called with; nothing unless said.
        optional args: OneOrMany<Argument>,
        /// Variables that it has beside PATH, HOME, LANG, TMPDIR and USER; it sees no other variable of the gate's.
        optional environment: MapOf<EnvironmentName, At<Inline>>,
        /// Where it runs; in the gate's own directory unless said.
        optional directory: At<File>,
        /// The OpenAPI description (3.0 or later, JSON or YAML) of an HTTP API, whose operations are the tools: a file, or an address that it is fetched from. In place of a `url`.
        optional openapi: At<DescriptionAt>,
        /// Where that API is; the description's first server unless said.
        optional base: At<Target>,
        /// Methods of it whose operations are tools; all of these unless said.
        optional methods: OneOrMany<ToolMethod>,
        /// Tools of it that clients see and may call; all unless said.
        optional tools: Selection,
        /// Prompts of it that clients see and may get; all unless said.
        optional prompts: Selection,
        /// Resources and templates of it that clients see and may read, by URI, in which {name} is as *; all unless said.
        optional resources: Selection,
        /// What becomes of a tool whose definition is not the one that is pinned: warn (it is told and counted) or refuse (it is hidden and refused, too). Without pins each is pinned as it was seen first. Default refuse where pins are said, else nothing is pinned.
        optional pin: At<OnToolChange>,
        /// The digests of its tools' definitions, as tollgate mcp list --pins prints them; a tool that is not among them is not as pinned.
        optional pins: MapOf<ToolName, At<ToolDigest>>,
    }
}

record! {
    /// Which servers some workloads may use.
    McpRoute {
        /// For logs, metrics and sessions, behind `mcp:`; the first workload's unless said.
        optional name: At<Name>,
        /// The workloads it is for; being named here registers them.
        required workload: OneOrMany<Name>,
        /// Where they find them. Default /mcp.
        optional path: At<ToolPath>,
        /// Their servers; all unless said.
        optional servers: OneOrMany<ServerName>,
        /// Tools that they see and may call, by whole names such as github__search; all unless said.
        optional tools: Selection,
        /// How they are told of tools: all (each with its definition), or search (two tools in their place: one finds tools by words, the other calls one). Default all.
        optional list_tools: At<ListTools>,
        /// Prompts that they see and may get, by whole names; all unless said.
        optional prompts: Selection,
        /// Resources and templates that they see and may read, by whole URIs such as files+file:///a; all unless said.
        optional resources: Selection,
        /// Servers that are given a caller's own token in place of the gate's credential, with the header in which callers bring it (x-github-token); who brings none uses the gate's.
        optional own_tokens: MapOf<ServerName, At<IdentityHeader>>,
        /// Rates of requests, each counted for each workload apart, or for each key or user of it.
        optional limits: ListOf<Limit>,
        /// Rates of calls of some tools, beside those; the first that names a tool counts.
        optional tool_limits: ListOf<ToolLimits>,
    }
}

record! {
    /// Rates of calls of some tools.
    ToolLimits {
        /// The tools, by whole names such as github__create_*.
        required tools: OneOrMany<NameGlob>,
        /// Their rates, which all of them share.
        required limits: ListOf<Limit>,
    }
}

record! {
    /// Names in which each * stands for any text, each time or under a condition.
    Selection {
        /// These; all unless said.
        optional allow: OneOrList<ShortOrFull<NameGlob, NamesWhen>>,
        /// None of these, also where they are allowed.
        optional deny: OneOrList<ShortOrFull<NameGlob, NamesWhen>>,
    }
}

record! {
    /// Names, and when they are meant.
    NamesWhen {
        /// The names.
        required name: OneOrMany<NameGlob>,
        /// A condition in CEL over the facts of a call, the server, its own name of the thing and, of tools and prompts, the arguments.
        required when: At<Expression>,
    }
}
