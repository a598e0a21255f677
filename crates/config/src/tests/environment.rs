//! Starting from the environment alone.

use policy::credential::UpstreamAuth;
use policy::identity::Source;
use policy::secret::Secret;

use super::rendering::rendered;
use super::world::World;
use crate::{EditorServers, from_environment, from_environment_with};

#[test]
fn nothing_in_the_environment_says_which_variables_to_set() {
    let faults = from_environment(&World::default()).unwrap_err();
    let text = faults.to_string();
    for name in [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "-c FILE",
    ] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn servers_of_tools_alone_make_a_gate_and_beside_a_key_they_are_for_its_workload() {
    let servers = EditorServers {
        file: "--mcp-json".into(),
        text: Some(r#"{"mcpServers": {"github": {"url": "https://mcp.example/mcp"}}}"#.into()),
        secret: Secret::new(b"canary-secret-of-sessions-32-byt".to_vec()),
    };
    let mut world = World::default();
    for routes in [1, 2] {
        let loaded = from_environment_with(Some(&servers), &world).unwrap();
        let s = &loaded.snapshot;
        assert_eq!(s.routes.len(), routes);
        let workload = s.workload_named(b"default").unwrap();
        let (_, rule, _) = policy::route::tools(s, workload, 0).unwrap();
        let servers = s.mcp.as_deref().unwrap().servers_of(rule);
        let names: Vec<&str> = servers.map(|server| &*server.name).collect();
        assert_eq!(names, ["github"]);
        assert_eq!(loaded.watched, Vec::<std::path::PathBuf>::new());
        assert!(!loaded.document.json().to_string().contains("canary"));
        world.set("OPENAI_API_KEY", "canary-openai");
    }
    world.set("TOLLGATE_MCP_SECRET", "short");
    let faults = from_environment_with(Some(&servers), &world).unwrap_err();
    assert!(
        faults.to_string().contains("fewer than 32 bytes"),
        "{faults}"
    );
}

#[test]
fn one_key_opens_one_provider_to_callers_without_the_header() {
    let loaded = from_environment(World::default().set("OPENAI_API_KEY", "canary-openai")).unwrap();
    let s = &loaded.snapshot;
    let [Source::Header(source)] = &s.identity.sources[..] else {
        panic!("{:?}", s.identity);
    };
    let default = source.default.unwrap();
    assert_eq!(&*s.workload(default).unwrap().name, "default");
    assert_eq!(s.endpoints[0].authority, "api.openai.com");
    assert_eq!(s.endpoints[0].base_path, "/v1");
    assert_eq!(s.routes.len(), 1);
    assert_eq!(loaded.warnings, []);
    assert!(!loaded.document.json().to_string().contains("canary"));
}

#[test]
fn models_go_to_the_provider_that_makes_them_and_the_rest_to_the_first() {
    let mut world = World::default();
    world
        .set("OPENAI_API_KEY", "canary-1")
        .set("ANTHROPIC_API_KEY", "canary-2")
        .set("GEMINI_API_KEY", "canary-3");
    let loaded = from_environment(&world).unwrap();
    let s = &loaded.snapshot;
    let workload = s.workload_named(b"default").unwrap();
    for (model, backend) in [
        ("gpt-5-mini", "openai"),
        ("o3", "openai"),
        ("claude-opus-4", "anthropic"),
        ("gemini-2.5-flash", "gemini"),
        ("something-else", "openai"),
    ] {
        let grant = policy::route::choose(s, workload, Some(model)).unwrap();
        let chosen = s.route(grant.grant.route).unwrap().backends[0];
        assert_eq!(&*s.backend(chosen).unwrap().name, backend, "{model}");
    }
    assert!(!rendered(&loaded).contains("canary"));
}

#[test]
fn an_engine_that_asks_for_no_key_needs_only_its_address() {
    let loaded =
        from_environment(World::default().set("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1"))
            .unwrap();
    assert_eq!(loaded.snapshot.endpoints[0].origin.port, 8000);
    assert_eq!(
        loaded.snapshot.endpoints[0].auth,
        policy::credential::UpstreamAuth::None
    );
}

#[test]
fn anthropic_addresses_may_leave_out_the_api_root_as_its_sdk_does() {
    for url in [
        "https://proxy.example",
        "https://proxy.example/",
        "https://proxy.example/v1",
    ] {
        let mut world = World::default();
        world
            .set("ANTHROPIC_API_KEY", "canary")
            .set("ANTHROPIC_BASE_URL", url);
        let loaded = from_environment(&world).unwrap();
        assert_eq!(loaded.snapshot.endpoints[0].base_path, "/v1", "{url}");
    }
}

#[test]
fn anthropic_is_sent_its_key_and_a_version_and_no_bearer() {
    let mut world = World::default();
    world.set("ANTHROPIC_API_KEY", "canary");
    for url in ["", "http://127.0.0.1:8000"] {
        world.set("ANTHROPIC_BASE_URL", url);
        let loaded = from_environment(&world).unwrap();
        let s = &loaded.snapshot;
        let UpstreamAuth::Header { name, value } = &s.endpoints[0].auth else {
            panic!("{:?}", s.endpoints[0].auth);
        };
        assert_eq!(
            (name.as_str(), value.expose()),
            ("x-api-key", &b"canary"[..])
        );
        let [version] = &s.backends[0].headers[..] else {
            panic!("{:?}", s.backends[0].headers);
        };
        assert_eq!(
            (
                &*version.name,
                version.value.of(std::iter::empty()).as_deref()
            ),
            (&b"anthropic-version"[..], Some(&b"2023-06-01"[..]))
        );
    }
}

#[test]
fn a_value_cannot_inject_structure_and_is_not_quoted_back() {
    let mut world = World::default();
    world
        .set("OPENAI_BASE_URL", "http://user:canary@h\"\nroutes: []")
        .set("OPENAI_API_KEY", "k");
    let text = from_environment(&world).unwrap_err().to_string();
    assert!(
        text.contains("environment: OPENAI_BASE_URL: ") && !text.contains("canary"),
        "{text}"
    );
}

#[test]
fn a_fault_names_its_variable_and_no_line() {
    for (name, value) in [
        ("OPENAI_BASE_URL", "ftp://127.0.0.1/v1"),
        ("GEMINI_API_KEY", "two\nlines"),
        ("TOLLGATE_DATA", "everywhere"),
        ("TOLLGATE_ADMIN", "127.0.0.1"),
        ("TOLLGATE_TRUST", "nobody at all"),
    ] {
        let mut world = World::default();
        world.set("OPENAI_API_KEY", "k").set(name, value);
        let text = from_environment(&world).unwrap_err().to_string();
        assert!(
            text.starts_with(&format!("environment: {name}: ")),
            "{text}"
        );
    }
}

#[test]
fn an_address_in_a_variable_is_shown_unless_a_secret_may_be_in_it() {
    let told = |value: &str| {
        let mut world = World::default();
        let refused = from_environment(world.set("OPENAI_BASE_URL", value));
        refused.unwrap_err().to_string()
    };
    let text = told("localhost:11434/v1");
    assert!(text.contains("\"localhost:11434/v1\" (of "), "{text}");
    for value in [
        "http://ada:canary@127.0.0.1:8000",
        "http://127.0.0.1:8000?key=canary",
        "ftp://127.0.0.1/v1?key=canary",
        "canary",
        "http://127.0.0.1:8000/sk-canary/chat/completions",
    ] {
        let text = told(value);
        assert!(!text.contains("canary"), "{text}");
    }
}

#[test]
fn where_to_listen_may_be_said_too() {
    let mut world = World::default();
    world.set("OPENAI_API_KEY", "canary");
    let usual = from_environment(&world).unwrap().host;
    assert_eq!(usual.data.to_string(), "127.0.0.1:1975");
    assert_eq!(usual.admin.to_string(), "127.0.0.1:1976");
    world
        .set("TOLLGATE_DATA", "0.0.0.0:80")
        .set("TOLLGATE_ADMIN", "[::1]:81");
    let open = from_environment(&world).unwrap_err().to_string();
    assert!(
        open.contains("can be reached from other machines"),
        "{open}"
    );
    world.set("TOLLGATE_TRUST", "anyone");
    let said = from_environment(&world).unwrap().host;
    assert_eq!(said.data.to_string(), "0.0.0.0:80");
    assert_eq!(said.admin.to_string(), "[::1]:81");
}

#[test]
fn an_address_without_a_path_is_a_fault_here_too() {
    for name in ["OPENAI_BASE_URL", "GEMINI_BASE_URL"] {
        let mut world = World::default();
        let refused = from_environment(world.set(name, "http://127.0.0.1:8000")).unwrap_err();
        let text = refused.to_string();
        assert!(
            text.contains("has no path") && text.contains("/v1"),
            "{text}"
        );
        let begins = format!("environment: {name}: \"http://127.0.0.1:8000\" (of \"${{{name}:-");
        assert!(
            text.starts_with(&begins) && !text.contains("at_root"),
            "{text}"
        );
    }
    let mut world = World::default();
    let anthropic = world.set("ANTHROPIC_BASE_URL", "http://127.0.0.1:8000");
    let loaded = from_environment(anthropic).unwrap();
    assert_eq!(loaded.snapshot.endpoints[0].base_path, "/v1");
}
