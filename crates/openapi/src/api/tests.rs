//! Descriptions as tools, and calls of them as requests.

use policy::mcp::{Described, HttpCall, NoCall};
use serde_json::{Value, json};
use testing::{Draw, seed};
use wire::head::Method;

use super::{Api, Left, Methods};
use crate::{Description, Fault, Server};

const PETS: &str = include_str!("pets.yaml");

fn api_of(text: &str, methods: &[Method]) -> (Api, Vec<Left>) {
    let description = Description::read(text.as_bytes()).expect("a description");
    Api::of(&description, &Methods(methods.to_vec()), "/v1").expect("an API")
}

fn tools(api: &Api) -> Vec<Value> {
    let list = api.list().expect("a list");
    let list: Value = serde_json::from_slice(&list).expect("JSON");
    list["tools"].as_array().expect("tools").clone()
}

fn call(api: &Api, tool: &str, arguments: &str) -> HttpCall {
    api.call(tool, Some(arguments.as_bytes())).expect("a call")
}

fn refused(api: &Api, tool: &str, arguments: &str) -> String {
    match api.call(tool, Some(arguments.as_bytes())) {
        Err(NoCall::Arguments(says)) => says,
        other => panic!("{tool} {arguments}: {other:?}"),
    }
}

#[test]
fn each_operation_is_a_tool_or_is_left_out_by_name() {
    let (api, left) = api_of(PETS, &[]);
    let names: Vec<String> = tools(&api)
        .iter()
        .map(|of| of["name"].as_str().unwrap_or("").to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "listPets",
            "addPet",
            "get_pets_petId",
            "replacePet",
            "removePet",
            "sign_in"
        ]
    );
    assert_eq!(api.len(), names.len());
    let left: Vec<(&str, &str)> = left.iter().map(|of| (&*of.operation, &*of.why)).collect();
    let why = |operation: &str| {
        let found = left.iter().find(|(of, _)| *of == operation);
        found.map_or("is a tool", |(_, why)| *why)
    };
    assert!(why("POST /pets/{petId}/photo").contains("multipart/form-data"));
    assert!(why("POST /subscriptions").contains("calls back"));
    assert!(
        why("GET /twice/a").contains("GET /twice/b")
            && why("GET /twice/b").contains("GET /twice/a")
    );
    assert!(why("GET /elsewhere").contains("none is fetched"));
    assert!(why("HEAD /pets").contains("no tools"));
    assert!(why("GET /other-host").contains("`servers` of its own"));
    assert_eq!(left.len(), 7, "{left:?}");
}

#[test]
fn a_tool_says_what_its_operation_takes() {
    let (api, _) = api_of(PETS, &[]);
    let tools = tools(&api);
    let add = tools
        .iter()
        .find(|of| of["name"] == "addPet")
        .expect("addPet");
    assert_eq!(add["description"], "Adds a pet\n\nIt must have a name.");
    assert_eq!(add["annotations"], json!({ "readOnlyHint": false }));
    let schema = &add["inputSchema"];
    assert_eq!(schema["required"], json!(["body"]));
    let body = &schema["properties"]["body"];
    assert_eq!(body["required"], json!(["name"]));
    assert_eq!(body["properties"]["name"], json!({ "type": "string" }));
    assert_eq!(body["properties"].get("id"), None, "the API makes it");
    let list = tools
        .iter()
        .find(|of| of["name"] == "listPets")
        .expect("listPets");
    assert_eq!(list["annotations"], json!({ "readOnlyHint": true }));
    let properties = list["inputSchema"]["properties"]
        .as_object()
        .expect("properties");
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    assert_eq!(names, ["X-Trace", "filter", "limit", "session", "tags"]);
}

#[test]
fn arguments_go_to_their_places() {
    let (api, _) = api_of(PETS, &[]);
    let asked = call(
        &api,
        "listPets",
        r#"{"limit": 10, "tags": ["a b", "c&d"], "filter": {"kind": "cat"}, "X-Trace": "t-1", "session": "s=1; admin=1"}"#,
    );
    assert_eq!((asked.method, &*asked.path), (Method::Get, "/v1/pets"));
    assert_eq!(
        asked.query,
        "?limit=10&tags=a%20b&tags=c%26d&filter%5Bkind%5D=cat"
    );
    let headers: Vec<(&str, &str)> = asked.headers.iter().map(|(k, v)| (&**k, &**v)).collect();
    assert_eq!(
        headers,
        [
            ("x-trace", "t-1"),
            ("cookie", "session=s%3D1%3B%20admin%3D1")
        ]
    );
    assert_eq!(asked.body, None);
    let asked = call(&api, "get_pets_petId", r#"{"petId": "a/b?c"}"#);
    assert_eq!((&*asked.path, &*asked.query), ("/v1/pets/a%2Fb%3Fc", ""));
    // A body is sent as it was written, and so are its numbers.
    let body = r#"{"name": "Rex",  "age": 1.50, "n": 12345678901234567890123}"#;
    let asked = call(&api, "addPet", &format!(r#"{{"body": {body}}}"#));
    assert_eq!(
        asked.body,
        Some(("application/json".into(), body.as_bytes().to_vec()))
    );
    let asked = call(
        &api,
        "sign_in",
        r#"{"body": {"user": "a&b", "scopes": ["x", "y"], "more": {"z": 1}}}"#,
    );
    let form = "user=a%26b&scopes=x&scopes=y&more=%7B%22z%22%3A%201%7D";
    let kind = "application/x-www-form-urlencoded";
    assert_eq!(asked.body, Some((kind.into(), form.as_bytes().to_vec())));
    let asked = call(
        &api,
        "replacePet",
        r#"{"petId": 7, "query_body": "x", "body": "plain"}"#,
    );
    assert_eq!((&*asked.path, &*asked.query), ("/v1/pets/7", "?body=x"));
    assert_eq!(
        asked.body,
        Some(("text/plain; charset=utf-8".into(), b"plain".to_vec()))
    );
}

#[test]
fn what_an_operation_does_not_take_is_refused_with_what_it_takes() {
    let (api, _) = api_of(PETS, &[]);
    for (tool, arguments, says) in [
        ("get_pets_petId", "{}", "`petId` is missing"),
        ("get_pets_petId", r#"{"petId": null}"#, "`petId` is missing"),
        ("get_pets_petId", r#"{"petId": ".."}"#, "leads elsewhere"),
        (
            "get_pets_petId",
            r#"{"petId": "x", "admin": 1}"#,
            "there is no argument `admin`; there are petId",
        ),
        (
            "get_pets_petId",
            r#"{"petId": "a", "petId": "b"}"#,
            "`petId` stands twice",
        ),
        ("get_pets_petId", "[]", "cannot be read"),
        ("addPet", "{}", "`body` is missing"),
        (
            "listPets",
            r#"{"X-Trace": "a\r\nx-admin: 1"}"#,
            "no header can have",
        ),
        ("listPets", r#"{"limit": [[1]]}"#, "within"),
    ] {
        let refused = refused(&api, tool, arguments);
        assert!(refused.contains(says), "{tool} {arguments}: {refused}");
    }
    assert_eq!(api.call("nothing", None), Err(NoCall::NoTool));
    assert_eq!(api.call("multipart", None), Err(NoCall::NoTool));
}

#[test]
fn methods_that_are_not_meant_are_no_tools() {
    let (api, _) = api_of(PETS, &[Method::Get]);
    let tools = tools(&api);
    let names: Vec<&str> = tools.iter().filter_map(|of| of["name"].as_str()).collect();
    assert_eq!(names, ["listPets", "get_pets_petId"]);
    assert_eq!(
        api.call("removePet", Some(br#"{"petId":1}"#)),
        Err(NoCall::NoTool)
    );
}

#[test]
fn what_is_no_description_says_so() {
    let read = |text: &str| Description::read(text.as_bytes()).map(drop);
    assert!(
        matches!(read("swagger: '2.0'\npaths: {}"), Err(Fault::Version(of)) if of.contains("Swagger"))
    );
    assert!(matches!(
        read("swagger: 2.0\npaths: {}"),
        Err(Fault::Version(_))
    ));
    assert!(matches!(
        read("openapi: 4.0.0\npaths: {}"),
        Err(Fault::Version(_))
    ));
    assert!(matches!(
        read("openapi: 3.10.0\npaths: {}"),
        Err(Fault::Version(_))
    ));
    assert!(matches!(read("openapi: 3.0.3"), Err(Fault::Other)));
    assert!(matches!(read("[1]"), Err(Fault::Other)));
    assert!(matches!(read("{\"openapi\": "), Err(Fault::Text(_))));
    assert_eq!(read("{\"openapi\": \"3.1.0\", \"paths\": {}}"), Ok(()));
    let many: String = (0..=super::OPERATIONS_MAX)
        .map(|nth| format!("  /p{nth}: {{get: {{}}}}\n"))
        .collect();
    let many =
        Description::read(format!("openapi: 3.1.0\npaths:\n{many}").as_bytes()).expect("one");
    assert!(matches!(
        Api::of(&many, &Methods::default(), ""),
        Err(Fault::Operations { .. })
    ));
}

#[test]
fn a_server_has_the_usual_values_of_its_variables() {
    let description = |server: &str| {
        let text = format!("openapi: 3.1.0\npaths: {{}}\nservers: [{server}]");
        Description::read(text.as_bytes()).expect("one").server()
    };
    let whole = "{url: 'https://{region}.example.com:{port}/v1', variables: {region: {default: eu}, port: {default: 8443}}}";
    assert_eq!(
        description(whole),
        Ok(Server::Whole("https://eu.example.com:8443/v1".into()))
    );
    assert_eq!(
        description("{url: /v2}"),
        Ok(Server::Relative("/v2".into()))
    );
    assert_eq!(description(""), Ok(Server::Relative("/".into())));
    assert!(description("{url: 'https://{x}/'}").is_err());
}

#[test]
fn damaged_descriptions_and_arguments_never_panic() {
    const MARKS: &[u8] = b"{}[]:,#&*!|\"' \n-$~/.ab01";
    let mut draw = Draw::new(seed("damaged_descriptions"));
    let arguments = [
        "{}",
        "null",
        r#"{"petId": "a"}"#,
        r#"{"limit": {"a": [1, {"b": null}]}, "tags": [], "filter": {"x": {"y": ["z"]}}}"#,
        r#"{"body": {"user": "a", "more": [[1]]}, "session": ["a"]}"#,
    ];
    let mut read = 0;
    for _ in 0..2_000 {
        let mut text = PETS.as_bytes().to_vec();
        for _ in 0..=draw.below(4) {
            let at = draw.below(text.len());
            match draw.below(3) {
                0 => drop(text.remove(at)),
                1 => text.insert(at, MARKS[draw.below(MARKS.len())]),
                _ => {
                    let end = (at + draw.below(40)).min(text.len());
                    let part = text[at..end].to_vec();
                    let to = draw.below(text.len());
                    text.splice(to..to, part);
                }
            }
        }
        let Ok(description) = Description::read(&text) else {
            continue;
        };
        let _base = description.server();
        let Ok((api, _)) = Api::of(&description, &Methods::default(), "") else {
            continue;
        };
        read += 1;
        for tool in tools(&api) {
            let name = tool["name"].as_str().expect("a name");
            for arguments in arguments {
                if let Ok(asked) = api.call(name, Some(arguments.as_bytes())) {
                    let is_plain = |b: u8| b.is_ascii_graphic() && !b"?#".contains(&b);
                    assert!(asked.path.bytes().all(is_plain), "{asked:?}");
                    let query = asked.query.strip_prefix('?').unwrap_or_default();
                    assert!(query.bytes().all(is_plain), "{asked:?}");
                }
            }
        }
    }
    assert!(read > 200, "{read} of them were read");
}
