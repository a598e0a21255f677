//! The one place that turns refusals into HTTP: statuses, types, codes, headers.
//!
//! Invariant: each refusal has one class, whoever answers it.
//! Not here: their words (`refusal`), how the answer is written (`reply`).

use std::time::Duration;

use super::{BatchRefusal, LocalReply, Refusal};
use crate::failure::Failure;
use crate::limit::Kind;

impl Refusal {
    /// What the log says of it beside its code, where that does not say it all.
    pub(crate) fn reason(&self) -> Option<String> {
        match self {
            Self::Limited { .. }
            | Self::LargerThanLimit { .. }
            | Self::LargerThanBudget { .. }
            | Self::BudgetExhausted { .. }
            | Self::Unpriced { .. }
            | Self::ModelNotOwn { .. }
            | Self::McpCredential { .. }
            | Self::McpTokenRefused { .. }
            | Self::OwnModelRequired => Some(self.to_string()),
            _ => None,
        }
    }

    /// The status, type and code of this refusal. The only place that knows them.
    pub(crate) fn class(&self) -> (u16, &'static str, &'static str) {
        let invalid = "invalid_request_error";
        match self {
            Self::Head(fault) => (fault.status(), invalid, fault.code()),
            Self::Call(fault) => (400, invalid, fault.code()),
            Self::BodyFraming(fault) => (400, invalid, fault.code()),
            Self::BodyTooLarge { .. } => (413, invalid, "request_too_large"),
            Self::Slow => (408, invalid, "request_timeout"),
            Self::ContentEncoding => (415, invalid, "unsupported_content_encoding"),
            Self::CodedBody => (400, invalid, "invalid_content_encoding"),
            Self::ContentType | Self::FormType => (415, invalid, "unsupported_content_type"),
            Self::FormModel => (400, invalid, "model_required"),
            Self::NoSuchPath
            | Self::OtherPath {
                is_below_root: false,
                ..
            } => (404, invalid, "unknown_url"),
            Self::OtherPath { .. } => (404, invalid, "operation_not_allowed"),
            Self::Operation { .. } | Self::NoWebSocket { .. } => {
                (404, invalid, "operation_not_allowed")
            }
            Self::RouteNotFound { .. } => (404, invalid, "route_not_found"),
            Self::NoCharge { .. } => (403, "permission_error", "operation_not_charged"),
            Self::Background { .. } => (400, invalid, "background_not_served"),
            Self::SharedAccount { .. } | Self::SharedAddress { .. } => {
                (400, invalid, "account_shared")
            }
            Self::ItemsPage { .. } => (400, invalid, "items_page_invalid"),
            Self::RealtimeEvent { .. } => (400, invalid, "realtime_event_refused"),
            Self::ResponseGone => (400, invalid, "previous_response_not_found"),
            Self::ResponseNotFound => (404, invalid, "response_not_found"),
            Self::Batches(refusal) => refusal.class(),
            Self::Method { .. } => (405, invalid, "method_not_allowed"),
            Self::HostNotAllowed => (421, invalid, "host_not_allowed"),
            Self::Misdirected => (421, invalid, "misdirected_request"),
            Self::OriginNotAllowed => (403, "permission_error", "origin_not_allowed"),
            Self::NotAuthorized => (403, "permission_error", "not_authorized"),
            Self::IdentityContradicted { .. } => (403, "permission_error", "identity_contradicted"),
            Self::CredentialMissing => (401, "authentication_error", "credential_missing"),
            Self::CredentialInvalid => (401, "authentication_error", "invalid_api_key"),
            Self::CredentialFailures { .. } => {
                (429, "rate_limit_error", "too_many_bad_credentials")
            }
            Self::WorkloadUnknown => (403, "permission_error", "workload_not_registered"),
            Self::IdentityUnavailable => (503, "server_error", "identity_unavailable"),
            Self::AuthorizerUnavailable => (503, "server_error", "authorizer_unavailable"),
            Self::IdentityRepeated { .. } => (400, invalid, "identity_repeated"),
            Self::UserUnreadable { .. } => (400, invalid, "user_unreadable"),
            Self::ConflictingCredentials => (400, invalid, "conflicting_credentials"),
            Self::WorkloadNotRegistered { .. } => (404, invalid, "workload_not_registered"),
            Self::McpRouteNotFound => (403, "permission_error", "mcp_route_not_found"),
            Self::McpMessage { .. } => (400, invalid, "mcp_message_invalid"),
            Self::McpVersion | Self::McpVersionUnknown { .. } => {
                (400, invalid, "mcp_version_unsupported")
            }
            Self::McpHeader { .. } => (400, invalid, "mcp_header_mismatch"),
            Self::McpCapability => (400, invalid, "mcp_capability_missing"),
            Self::McpState => (400, invalid, "mcp_state_invalid"),
            Self::McpNotBridged { .. } => (502, "upstream_error", "mcp_not_bridged"),
            Self::McpNoRoom { .. } => (503, "server_error", "mcp_no_room"),
            Self::McpSessionMissing => (400, invalid, "mcp_session_missing"),
            Self::McpSessionNotFound => (404, invalid, "mcp_session_not_found"),
            // To JSON-RPC an error is an answer; by another status clients would not know it from one of HTTP.
            Self::McpMethod { .. } => (200, invalid, "mcp_method_not_served"),
            Self::McpNotFound { .. } => (200, invalid, "mcp_not_found"),
            Self::McpToolChanged { .. } => (403, "permission_error", "mcp_tool_changed"),
            Self::McpCredential { .. } => (502, "upstream_error", "upstream_credential_refused"),
            // By a 401 a client would renew its token for the gate, which is good.
            Self::McpTokenRefused { .. } => (403, "permission_error", "mcp_token_refused"),
            Self::McpAmbiguous { .. } => (200, invalid, "mcp_ambiguous_name"),
            Self::ModelNotFound { .. } | Self::ModelNotOwn { .. } | Self::ModelBesides { .. } => {
                (404, invalid, "model_not_found")
            }
            Self::OwnModelRequired | Self::ModelRequired => (400, invalid, "model_required"),
            Self::ModelUnread => (403, "permission_error", "operation_not_allowed"),
            Self::Limited { .. } => (429, "rate_limit_error", "rate_limit_exceeded"),
            Self::LargerThanLimit { .. } => (429, "rate_limit_error", "request_exceeds_limit"),
            Self::BudgetExhausted { .. } => (402, "insufficient_quota", "insufficient_quota"),
            Self::LargerThanBudget { .. } => (402, "insufficient_quota", "request_exceeds_budget"),
            Self::SubjectsExhausted => (503, "server_error", "subjects_exhausted"),
            Self::Unpriced { .. } => (403, "permission_error", "model_not_priced"),
            Self::Upstream(failure) if failure.is_local() => {
                (failure.status(), "server_error", failure.code())
            }
            Self::Upstream(Failure::Untranslatable) | Self::Unfit { .. } => {
                let failure = Failure::Untranslatable;
                (failure.status(), invalid, failure.code())
            }
            Self::Filtered { code } => (403, "permission_error", code),
            Self::Upstream(failure) => (failure.status(), "upstream_error", failure.code()),
            Self::UpstreamBusy { status, .. } | Self::PickerRefused { status, .. } => {
                let failure = Failure::Status(*status);
                (failure.status(), "upstream_error", failure.code())
            }
            Self::Unpicked { .. } => (503, "upstream_error", "upstream_unavailable"),
            Self::UpstreamCredential => (502, "upstream_error", "upstream_credential_refused"),
            Self::AnswersUntaken => (503, "server_error", "answers_untaken"),
            Self::Overloaded => (503, "server_error", "overloaded"),
            Self::LedgerUnavailable => (503, "server_error", "ledger_unavailable"),
            Self::RouteClosed => (500, "server_error", "route_closed"),
            Self::NoneReady => (503, "server_error", "upstream_unavailable"),
            Self::Redirected { status, .. } => (*status, invalid, "redirected"),
            Self::Bug(_) => (500, "server_error", "internal_error"),
        }
    }

    /// The gate's answer.
    #[must_use]
    pub fn reply(&self) -> LocalReply {
        let (status, kind, code) = self.class();
        LocalReply {
            status,
            kind,
            code,
            param: match self {
                Self::Call(fault) => fault.member,
                Self::OwnModelRequired | Self::ModelRequired => Some("model"),
                Self::Background { member }
                | Self::SharedAccount { member }
                | Self::ModelBesides { member, .. } => Some(member),
                Self::ResponseGone => Some("previous_response_id"),
                _ => None,
            },
            message: self.to_string(),
            retry_after: match self {
                Self::Limited { wait, .. }
                | Self::UpstreamBusy { wait, .. }
                | Self::PickerRefused { wait, .. }
                | Self::CredentialFailures { wait } => Some(*wait),
                Self::Overloaded
                | Self::AnswersUntaken
                | Self::LedgerUnavailable
                | Self::Batches(BatchRefusal::Unavailable)
                | Self::NoneReady
                | Self::AuthorizerUnavailable
                | Self::IdentityUnavailable
                | Self::Upstream(Failure::LocalCapacity) => Some(Duration::from_secs(1)),
                _ => None,
            },
            allow: match self {
                Self::Method { allow } => Some(allow),
                _ => None,
            },
            location: match self {
                Self::Redirected { location, .. } => Some(location.clone()),
                _ => None,
            },
            challenge: match self {
                Self::CredentialMissing => Some("Bearer"),
                Self::CredentialInvalid => Some("Bearer error=\"invalid_token\""),
                _ => None,
            },
            should_retry: matches!(
                self,
                Self::Batches(
                    BatchRefusal::TooMany { .. }
                        | BatchRefusal::TooManyKept
                        | BatchRefusal::MadeNotKept
                ) | Self::LargerThanLimit { .. }
                    | Self::LargerThanBudget { .. }
                    | Self::BudgetExhausted { .. }
            )
            .then_some(false),
        }
    }

    /// Whether the exchange failed (upstream or us) rather than was refused.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Upstream(failure) => *failure != Failure::Untranslatable,
            Self::UpstreamBusy { .. }
            | Self::PickerRefused { .. }
            | Self::Unpicked { .. }
            | Self::UpstreamCredential
            | Self::McpCredential { .. }
            | Self::Batches(BatchRefusal::MadeNotKept)
            | Self::McpNotBridged { .. }
            | Self::Bug(_) => true,
            _ => false,
        }
    }

    /// The kind of limit that refused, for the counter.
    #[must_use]
    pub fn limited(&self) -> Option<Kind> {
        match self {
            Self::Limited { kind, .. } => Some(*kind),
            Self::LargerThanLimit { .. } => Some(Kind::Tokens),
            _ => None,
        }
    }
}
