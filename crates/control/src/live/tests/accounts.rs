//! Credentials that name no key: accounts of the gate's own machine, and issuers that are asked for a token.

use serde_json::{Value, json};

use super::*;

/// The service `first` with this credential; routes and policies are of the namespace `a`, and the Gateway of this one.
fn with(credential: &Value, gateway: &str) -> Vec<Value> {
    let mut all = base();
    for object in &mut all {
        match object["kind"].as_str() {
            Some("Gateway") => {
                object["metadata"]["namespace"] = gateway.into();
                object["spec"]["listeners"][0]["allowedRoutes"]["namespaces"]["from"] =
                    "All".into();
            }
            Some("AIGatewayRoute") => {
                object["spec"]["parentRefs"][0]["namespace"] = gateway.into();
            }
            Some("BackendSecurityPolicy") => {
                let mut spec = json!({ "targetRefs": targets("AIServiceBackend", "first") });
                let members = spec.as_object_mut().expect("a map");
                members.extend(credential.as_object().expect("a map").clone());
                object["spec"] = spec;
            }
            Some("Secret") => {
                object["data"]["client-secret"] = "bWFkZS11cA==".into();
            }
            _ => {}
        }
    }
    all
}

fn of_machine() -> [Value; 2] {
    [
        json!({ "type": "GCPCredentials", "gcpCredentials": { "projectName": "p", "region": "r" } }),
        json!({ "type": "AWSCredentials", "awsCredentials": { "region": "r" } }),
    ]
}

fn by_issuer(issuer: &str) -> Value {
    let oidc = json!({ "provider": { "issuer": issuer }, "clientID": "gate", "clientSecret": { "name": "key" } });
    json!({
        "type": "AzureCredentials",
        "azureCredentials": { "clientID": "app", "tenantID": "t", "oidcExchangeToken": { "oidc": oidc } },
    })
}

fn says(credential: &Value, gateway: &str, reaches_machine: bool) -> String {
    let live = lowered_where(&with(credential, gateway), None, reaches_machine);
    said(&live, "BackendSecurityPolicy", "key")
}

#[test]
fn the_account_of_the_gates_machine_is_for_policies_of_the_gateways_namespace() {
    for credential in of_machine() {
        let own = says(&credential, "a", true);
        assert!(own.contains("names no key"), "{own}");
        assert!(!own.contains("Gateway's namespace"), "{own}");
        let other = says(&credential, "g", true);
        let is = "the account of the gate's own machine is for policies of the Gateway's namespace";
        assert!(other.contains(is), "{other}");
    }
}

#[test]
fn an_issuer_is_asked_and_never_one_on_the_gates_own_machine() {
    let good = says(&by_issuer("https://login.example/main"), "g", true);
    assert!(!good.contains("azureCredentials"), "{good}");
    for issuer in [
        "http://127.0.0.1:1976/x",
        "http://169.254.169.254",
        "http://localhost",
        "http://user@[::1]:80/",
        "http://2130706433/",
    ] {
        let live = lowered_where(&with(&by_issuer(issuer), "g"), None, false);
        let said = said(&live, "BackendSecurityPolicy", "key");
        assert!(said.contains("the gate's own machine"), "{issuer}: {said}");
    }
}
