//! Settings without a counterpart: what each is, and what to use instead.
//!
//! Invariant: of what they are set to nothing is said, since any of them may hold a secret.

use super::comment;
use super::price;
use super::read::Section;

/// Settings and what is said of each.
pub(super) type Table = &'static [(&'static [&'static str], &'static str)];

const CALL: &str = "a default for calls; the gate adds no members to calls: clients say it";

const PARAMS: Table = &[
    (
        &[
            "input_cost_per_second",
            "output_cost_per_second",
            "input_cost_per_image",
            "output_cost_per_image",
            "input_cost_per_character",
            "output_cost_per_character",
        ],
        "prices are of tokens, and of a call (`request`)",
    ),
    (
        &[
            "temperature",
            "max_tokens",
            "max_completion_tokens",
            "top_p",
            "seed",
            "stop",
            "n",
            "presence_penalty",
            "frequency_penalty",
            "reasoning_effort",
            "thinking",
            "extra_body",
            "dimensions",
            "tools",
            "response_format",
        ],
        CALL,
    ),
    (
        &["stream_timeout"],
        "a time for streams alone: `timeouts.idle` is the longest silence in one, 15m unless said",
    ),
    (
        &["max_retries", "num_retries"],
        "retries are a route's: `retries: { attempts: N }`",
    ),
    (
        &["max_parallel_requests"],
        "calls at one time are not limited; `limits` of the route are rates, `pool: { connections: N }` of the backend bounds each worker",
    ),
    (
        &["max_budget", "budget_duration"],
        "a budget of one deployment: write `budgets: { NAME: { model: MODEL, money: N, per: month } }`, with a price for the model",
    ),
    (
        &["tags"],
        "routes do not choose by tags: give each tag's callers a workload, and a route of its own",
    ),
    (
        &[
            "drop_params",
            "additional_drop_params",
            "allowed_openai_params",
        ],
        "members of calls pass as they are; in a translation what cannot be said is refused with its name, and hints are dropped and counted",
    ),
    (
        &["ssl_verify"],
        "certificates are always checked: `ca: FILE` names other roots",
    ),
    (
        &["use_in_pass_through"],
        "calls pass to the backend in its own API without a setting, where its `dialect` is the client's",
    ),
    (
        &["cache_control_injection_points"],
        "marks of caches are the client's",
    ),
    (
        &["mock_response", "mock_timeout"],
        "answers are not made up: `tollgate demo` has simulated engines",
    ),
    (
        &["api_version"],
        "of another API than Azure's: `query: { api-version: … }` adds one",
    ),
    (
        &["aws_session_token"],
        "a key of a session: `session_token: { env: NAME }` beside its secret",
    ),
    (
        &[
            "aws_role_name",
            "aws_session_name",
            "aws_web_identity_token",
            "aws_profile_name",
            "aws_bedrock_runtime_endpoint",
            "aws_sts_endpoint",
        ],
        "a role of AWS: `web_identity: { role_arn: …, token_file: … }`, `imds: true` or `container: true` in place of keys",
    ),
    (&["region_name"], "regions are told by their addresses"),
    (&["model_info"], "kept for callers; nothing here reads it"),
];

const INFO: Table = &[
    (&["mode"], "the gate knows calls by their paths"),
    (
        &["base_model"],
        "prices are by the name that clients ask for",
    ),
    (&["supported_environments"], "one file for each environment"),
    (
        &["access_groups"],
        "who may call a model is said by the `workload` of its route, and by `authority`",
    ),
    (
        &["custom_tokenizer"],
        "the gate's own count: `tokenizers: { MODEL: { file: … } }`",
    ),
    (
        &["max_tokens", "max_input_tokens", "max_output_tokens"],
        "windows are not checked before a call; `output_max` of the route is what one answer can have",
    ),
];

pub(super) const LITELLM: Table = &[
    (
        &["drop_params", "modify_params", "additional_drop_params"],
        "members of calls pass as they are; in a translation what cannot be said is refused with its name, and hints are dropped and counted",
    ),
    (
        &[
            "cache",
            "cache_params",
            "enable_caching_on_provider_specific_optional_params",
        ],
        "answers are not cached; providers' prompt caches work, and are metered",
    ),
    (
        &[
            "callbacks",
            "success_callback",
            "failure_callback",
            "service_callbacks",
            "callback_settings",
        ],
        "nothing is sent to callbacks: metrics for Prometheus are on the admin address, spans go to a collector with `traces: { otlp: URL }`, every call is a line of `access_log` and a row of `ledger`",
    ),
    (
        &[
            "turn_off_message_logging",
            "redact_messages_in_exceptions",
            "redact_user_api_key_info",
            "langfuse_default_tags",
        ],
        "prompts and answers are never logged, so nothing has to be turned off",
    ),
    (
        &["content_policy_fallbacks", "context_window_fallbacks"],
        "a refused or too long call is the client's error and goes nowhere else: clients ask for the larger model by name",
    ),
    (
        &[
            "max_end_user_budget",
            "default_max_internal_user_budget",
            "max_internal_user_budget",
            "internal_user_budget_duration",
            "default_internal_user_params",
            "default_team_params",
            "default_team_settings",
        ],
        "budgets of people: `budgets: { NAME: { money: N, per: month, for: user } }`",
    ),
    (
        &[
            "upperbound_key_generate_params",
            "default_key_generate_params",
            "key_generation_settings",
        ],
        "what a key may have is said when it is made: `tollgate keys create --help`",
    ),
    (
        &[
            "set_verbose",
            "json_logs",
            "debug_level",
            "suppress_debug_info",
        ],
        "logs: `tollgate run --log debug`, `--log-format json`",
    ),
    (&["guardrails", "guardrail"], "content is not looked at"),
    (
        &["ssl_verify", "ssl_certificate"],
        "certificates are always checked: `ca: FILE` of a backend names other roots",
    ),
    (
        &["force_ipv4"],
        "a name's addresses are tried in the system's order, and one that does not answer is passed over",
    ),
    (
        &["cost_discount_config", "cost_margin_config"],
        "discounts are said in `prices`, for some callers with `for`",
    ),
    (
        &["mcp_aliases", "mcp_servers"],
        "servers of tools are `mcp.servers` here: docs/mcp.md",
    ),
    (
        &["public_model_groups", "model_group_settings"],
        "`/v1/models` lists what a caller's routes take",
    ),
    (
        &["tag_budget_config"],
        "budgets by tag: give each tag's callers a workload, and `budgets: { NAME: { workload: … } }`",
    ),
    (
        &[
            "disable_end_user_cost_tracking",
            "disable_end_user_cost_tracking_prometheus_only",
            "enable_end_user_cost_tracking_prometheus_only",
        ],
        "users are in rows and not in metrics; `record_user: off` of `identity` leaves them out",
    ),
    (
        &["model_alias_map"],
        "an alias is a route: `match: { model: ALIAS }` with `model: NAME`",
    ),
];

pub(super) const ROUTER: Table = &[
    (
        &["routing_strategy_args", "lowest_latency_buffer"],
        "addresses of a backend are taken by weight, and left alone while they fail (`ejection`)",
    ),
    (
        &[
            "redis_host",
            "redis_port",
            "redis_password",
            "redis_url",
            "redis_db",
            "cache_responses",
            "cache_kwargs",
            "client_ttl",
        ],
        "no Redis: limits and budgets are one gate's own; several gates each have their share",
    ),
    (
        &["content_policy_fallbacks", "context_window_fallbacks"],
        "a refused or too long call is the client's error and goes nowhere else: clients ask for the larger model by name",
    ),
    (
        &["enable_pre_call_checks", "enable_pre_call_check"],
        "windows are not checked before a call: the provider's refusal is the client's answer",
    ),
    (&["optional_pre_call_checks"], "`limits` always hold"),
    (
        &["retry_policy", "model_group_retry_policy", "retry_after"],
        "which statuses are tried again: `retries: { statuses: […] }` of a route; what an upstream asks for with retry-after is kept",
    ),
    (
        &["allowed_fails_policy", "disable_cooldowns"],
        "`ejection` of a backend counts failures in a row, whichever they are",
    ),
    (
        &["stream_timeout"],
        "a time for streams alone: `timeouts.idle` is the longest silence in one, 15m unless said",
    ),
    (
        &["max_fallbacks"],
        "`retries: { attempts: N }` of a route counts all its tries",
    ),
    (
        &["enable_tag_filtering", "tag_filtering_match_any"],
        "routes do not choose by tags: give each tag's callers a workload, and a route of its own",
    ),
    (
        &["provider_budget_config"],
        "budgets of providers: `budgets: { NAME: { model: […], money: N, per: day } }`",
    ),
    (
        &["default_max_parallel_requests", "max_parallel_requests"],
        "calls at one time are not limited; `limits` are rates",
    ),
    (&["default_litellm_params"], CALL),
    (
        &["default_priority", "polling_interval"],
        "calls do not wait in a queue",
    ),
    (
        &["set_verbose", "debug_level"],
        "logs: `tollgate run --log debug`",
    ),
    (
        &["model_group_alias"],
        "a hidden alias is taken, and listed nowhere else than here",
    ),
];

pub(super) const GENERAL: Table = &[
    (
        &[
            "database_url",
            "database_connection_pool_limit",
            "database_connection_timeout",
            "database_connection_pool_timeout",
            "allow_requests_on_db_unavailable",
            "proxy_batch_write_at",
            "disable_prisma_schema_update",
        ],
        "no database: rows are in the `ledger`, a file; `ledger: { postgres: { env: NAME } }` copies them to Postgres. Keys, users and spend of that database are not taken over",
    ),
    (
        &["store_model_in_db", "supported_db_objects", "config_type"],
        "models are said in this file, which is watched. What the other database has is not taken over",
    ),
    (
        &["salt_key", "litellm_salt_key"],
        "no secrets are kept in a database",
    ),
    (
        &[
            "alerting",
            "alerting_threshold",
            "alert_types",
            "alerting_args",
            "alert_to_webhook_url",
            "spend_report_frequency",
        ],
        "alerts come from Prometheus: the rules are in `deploy`",
    ),
    (
        &["enable_jwt_auth", "litellm_jwtauth"],
        "tokens that an issuer signs: `identity: { jwt: { issuer: …, audience: …, workload_claim: … } }`",
    ),
    (
        &[
            "enable_oauth2_auth",
            "enable_oauth2_proxy_auth",
            "oauth2_config_mappings",
        ],
        "tokens that an issuer is asked about: `identity: { introspection: { url: … } }`",
    ),
    (
        &["custom_auth", "custom_key_generate", "custom_sso"],
        "no code is loaded: `identity` knows keys, tokens, certificates and logins, `authority` rules in CEL and Rego or a service of yours (`ext_authz`)",
    ),
    (
        &["allowed_routes", "public_routes", "admin_only_routes"],
        "calls that are not read pass only where a route lists them (`unread`); who may call what is said by `authority`",
    ),
    (
        &["allowed_ips"],
        "addresses: `authority` with a rule on the client's address",
    ),
    (
        &["use_x_forwarded_for"],
        "`client_address: { trusted_proxies: […] }` says whose word counts",
    ),
    (
        &["pass_through_endpoints"],
        "other services: a backend with `serves: http` and a route with `match: { path: … }`",
    ),
    (
        &["forward_client_headers_to_llm_api", "forward_openai_org_id"],
        "headers pass by lists: `forward_headers` of a route",
    ),
    (
        &["max_parallel_requests", "global_max_parallel_requests"],
        "calls at one time are not limited; `limits` are rates, `bounds: { connections: N }` bounds a worker",
    ),
    (
        &["max_response_size_mb"],
        "answers have no bound: they are streamed",
    ),
    (
        &[
            "background_health_checks",
            "health_check_interval",
            "health_check_details",
        ],
        "no calls are made to look whether a backend is well: real ones tell, and `ejection` leaves it alone",
    ),
    (
        &["litellm_key_header_name"],
        "keys come in `authorization`, `x-api-key`, `api-key` or `x-goog-api-key`",
    ),
    (
        &[
            "enforce_user_param",
            "enforced_params",
            "reject_clientside_metadata_tags",
        ],
        "members of calls are asked for by rules: `authority`",
    ),
    (&["store_prompts_in_spend_logs"], "prompts are never kept"),
    (
        &[
            "disable_spend_logs",
            "disable_spend_updates",
            "disable_reset_budget",
            "maximum_spend_logs_retention_interval",
            "proxy_budget_rescheduler_min_time",
            "proxy_budget_rescheduler_max_time",
        ],
        "the `ledger` has a row for each call, without an interval: take it out for none",
    ),
    (
        &[
            "completion_model",
            "embedding_model",
            "image_generation_model",
            "moderation_model",
        ],
        "a model in place of the client's: `model: NAME` of a route",
    ),
    (
        &[
            "key_management_system",
            "key_management_settings",
            "use_azure_key_vault",
            "use_google_kms",
        ],
        "secrets come from variables and files, which such a system can write",
    ),
    (
        &[
            "infer_model_from_keys",
            "ui_access_mode",
            "disable_master_key_return",
            "disable_adding_master_key_hash_to_db",
            "litellm_license",
            "user_api_key_cache_ttl",
        ],
        "of its user interface and keys, which are not here",
    ),
    (
        &[
            "allow_client_side_credentials",
            "use_client_credentials_pass_through_routes",
        ],
        "clients never bring the upstream's credential: it is the backend's",
    ),
    (
        &["disable_retry_on_max_parallel_request_limit_error"],
        "a refusal by a limit is never tried again",
    ),
];

pub(super) const SECTIONS: Table = &[
    (&["guardrails"], "content is not looked at"),
    (
        &[
            "mcp_servers",
            "mcp_tools",
            "mcp_aliases",
            "mcp_semantic_tool_filter",
        ],
        "servers of tools are `mcp.servers` here: docs/mcp.md",
    ),
    (&["callback_settings"], "nothing is sent to callbacks"),
    (
        &["include"],
        "other files: import each for itself, and put the parts together",
    ),
    (
        &[
            "vector_store_registry",
            "search_tools",
            "prompts",
            "policies",
            "agent_list",
            "agents",
        ],
        "of services that are not behind the gate",
    ),
    (
        &["files_settings", "finetune_settings", "assistant_settings"],
        "files and batches pass where a route lists their calls (`unread`)",
    ),
];

/// What is said of a setting.
fn said(table: Table, key: &str) -> &'static str {
    let known = table.iter().find(|(keys, _)| keys.contains(&key));
    known.map_or("nothing here is known by this name", |(_, says)| says)
}

/// Names every setting of a section that was not read. Those of one kind are named together.
pub(super) fn of(section: &Section<'_>, read: &[&[&str]], table: Table, notes: &mut Vec<String>) {
    let mut kinds: Vec<(&'static str, Vec<String>)> = Vec::new();
    for entry in section.entries() {
        let key = entry.key.as_str();
        if read.iter().any(|keys| keys.contains(&key)) {
            continue;
        }
        let place = section.place_of(key);
        let shown = format!("{} (line {})", place.path, place.line);
        let says = said(table, key);
        match kinds.iter_mut().find(|(known, _)| *known == says) {
            Some((_, shown_ones)) => shown_ones.push(shown),
            None => kinds.push((says, vec![shown])),
        }
    }
    let kinds = kinds.into_iter();
    notes.extend(kinds.map(|(says, keys)| format!("{}: {says}.", keys.join(", "))));
}

pub(super) fn of_params(params: &Section<'_>, read: &[&[&str]], notes: &mut Vec<String>) {
    of(params, &[read, &[price::READ]].concat(), PARAMS, notes);
}

pub(super) fn of_info(info: &Section<'_>, notes: &mut Vec<String>) {
    // What a model can do is the model's.
    let is_fact = |key: &str| key.starts_with("supports_");
    let facts: Vec<&str> = info.entries().map(|entry| entry.key.as_str()).collect();
    let facts: Vec<&str> = facts.into_iter().filter(|key| is_fact(key)).collect();
    of(info, &[&["id"], price::READ, &facts], INFO, notes);
}

pub(super) fn of_item(item: &Section<'_>, notes: &mut Vec<String>) {
    of(
        item,
        &[&["model_name", "litellm_params", "model_info"]],
        PARAMS,
        notes,
    );
}

/// A setting that was read, and means something else here.
pub(super) fn remark(section: &Section<'_>, key: &str, says: &str, notes: &mut Vec<String>) {
    if section.get(key).is_some() {
        notes.push(comment::of(&section.place_of(key), says));
    }
}
