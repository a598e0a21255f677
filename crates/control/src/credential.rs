//! BackendSecurityPolicy: what the gate sends upstream to be let in.
//!
//! Invariant: no secret stands in what is made here, only where it is. In a cluster the accounts of the gate's own machine are for policies
//! of the Gateway's namespace: who writes one says where the credential goes, too.

mod oidc;

use crate::cluster::{Cluster, Content};
use crate::fields::{Fields, Item, Said};
use crate::findings::{Findings, Spot};
use crate::gateway::targets;
use crate::object::{AI, CORE, INFERENCE, Object};
use crate::reference::Reference;
use crate::tree::Tree;

/// A credential, and the header that carries it; none where it says that itself.
#[derive(Debug, Clone)]
pub(crate) struct Credential {
    members: Vec<(String, Tree)>,
    header: Option<&'static str>,
    /// The project of Google's, and the region, where it says them.
    pub(crate) project: Option<[Said<String>; 2]>,
    spot: Spot,
}

impl Credential {
    /// For a backend whose dialect sends credentials in this header.
    pub(crate) fn tree(&self, usual: &str) -> Tree {
        let mut members = self.members.clone();
        if let Some(header) = self.header.filter(|header| *header != usual) {
            members.push(("header".into(), Tree::text(header)));
        }
        Tree::Map(members).of(&self.spot)
    }
}

/// What has a credential.
const TARGETS: [(&str, &str); 2] = [(AI, "AIServiceBackend"), (INFERENCE, "InferencePool")];

/// Policies, and which service each is for.
pub(crate) fn policies(
    cluster: &Cluster<'_>,
    findings: &mut Findings,
) -> Vec<(Reference, Credential)> {
    let mut found: Vec<(Reference, Credential)> = Vec::new();
    for policy in cluster.of_kind("BackendSecurityPolicy") {
        let mut spec = policy.spec(findings);
        let attaches = ["targetRef", "targetRefs", "targetSelectors"];
        let is_attached = attaches.iter().any(|name| spec.take(name).is_some());
        let targets = if is_attached {
            targets(&mut spec, policy, |_| true, findings)
        } else {
            // It keeps nobody out, and an API server takes it.
            let says = "is for nothing: no call has its credential";
            let hint = "name what it is for in spec.targetRefs";
            findings.warn(&policy.spot, says, hint);
            Vec::new()
        };
        let credential = credential(cluster, policy, &mut spec, findings);
        spec.end(findings);
        for target in targets {
            if !target.is_one_of(&TARGETS, findings)
                || cluster.resolve(policy, &target, findings).is_none()
            {
                continue;
            }
            if found
                .iter()
                .any(|(of, _)| (&of.namespace, &of.name) == (&target.namespace, &target.name))
            {
                findings.fault(
                    &target.spot,
                    "has a credential by another policy",
                    "keep one of the policies",
                );
            }
            found.extend(credential.clone().map(|credential| (target, credential)));
        }
    }
    found
}

fn credential(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    spec: &mut Fields<'_>,
    findings: &mut Findings,
) -> Option<Credential> {
    let kind = spec.needed_text("type", findings);
    oidc::overridden(cluster, spec, findings);
    let blocks = [
        "apiKey",
        "anthropicAPIKey",
        "azureAPIKey",
        "azureCredentials",
        "awsCredentials",
        "gcpCredentials",
    ];
    let mut there: Vec<(&str, Item<'_>)> = Vec::new();
    for name in blocks {
        there.extend(spec.take(name).map(|item| (name, item)));
    }
    let kind = kind?;
    let wanted = match kind.value.as_str() {
        "APIKey" => "apiKey",
        "AnthropicAPIKey" => "anthropicAPIKey",
        "AzureAPIKey" => "azureAPIKey",
        "AzureCredentials" => "azureCredentials",
        "AWSCredentials" => "awsCredentials",
        "GCPCredentials" => "gcpCredentials",
        _ => {
            let hint = "write APIKey, AnthropicAPIKey, AzureAPIKey, AzureCredentials, AWSCredentials or GCPCredentials";
            findings.fault(&kind.spot, "is no kind of credential", hint);
            return None;
        }
    };
    for (name, item) in there.iter().filter(|(name, _)| *name != wanted) {
        findings.fault(
            &item.spot,
            format!("says {name}, and the type is {}", kind.value),
            "keep one",
        );
    }
    let Some((_, item)) = there.into_iter().find(|(name, _)| *name == wanted) else {
        findings.fault(&kind.spot, format!("needs {wanted}"), "");
        return None;
    };
    let made = |name: &str, tree: Tree| Credential {
        members: vec![(name.to_owned(), tree)],
        header: None,
        project: None,
        spot: item.spot.clone(),
    };
    match wanted {
        "azureCredentials" => {
            azure(cluster, policy, &item, findings).map(|tree| made("azure", tree))
        }
        "awsCredentials" => aws(cluster, policy, &item, findings).map(|tree| made("aws", tree)),
        "gcpCredentials" => {
            let (project, tree) = google(cluster, policy, &item, findings);
            Some(Credential {
                project,
                ..made("google", tree?)
            })
        }
        _ => {
            let mut of = item.fields(findings);
            let named = secret(policy, of.need("secretRef", findings), findings);
            of.end(findings);
            let named = named?;
            let content = cluster.content(policy, &named, &["apiKey"], findings)?;
            let Tree::Map(members) = content.source(&named.spot) else {
                return None;
            };
            Some(Credential {
                members,
                header: Some(match wanted {
                    "anthropicAPIKey" => "x-api-key",
                    "azureAPIKey" => "api-key",
                    _ => "authorization",
                }),
                project: None,
                spot: item.spot.clone(),
            })
        }
    }
}

/// The Secret that is named.
fn secret(
    policy: &Object<'_>,
    item: Option<Item<'_>>,
    findings: &mut Findings,
) -> Option<Reference> {
    let named = Reference::whole(&item?, (CORE, "Secret"), &policy.namespace, findings)?;
    named
        .is_one_of(&[(CORE, "Secret")], findings)
        .then_some(named)
}

fn azure(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    item: &Item<'_>,
    findings: &mut Findings,
) -> Option<Tree> {
    let mut of = item.fields(findings);
    let client = of.needed_text("clientID", findings);
    let tenant = of.needed_text("tenantID", findings);
    let (named, exchanged) = (of.take("clientSecretRef"), of.take("oidcExchangeToken"));
    of.end(findings);
    let proof = match (named, exchanged) {
        (Some(named), None) => {
            let named = secret(policy, Some(named), findings)?;
            let secret = cluster.content(policy, &named, &["client-secret"], findings)?;
            ("client_secret", secret.source(&named.spot))
        }
        (None, Some(exchanged)) => {
            let mut of = exchanged.fields(findings);
            let token = oidc::token(cluster, policy, &mut of, findings);
            of.end(findings);
            ("federated_token", token?)
        }
        _ => {
            let says = "needs exactly one of clientSecretRef and oidcExchangeToken";
            findings.fault(&item.spot, says, "");
            return None;
        }
    };
    let (client, tenant) = (client?, tenant?);
    let (name, proof) = proof;
    Some(Tree::map([
        ("tenant", Some(Tree::text(tenant.value).of(&tenant.spot))),
        ("client_id", Some(Tree::text(client.value).of(&client.spot))),
        (name, Some(proof)),
    ]))
}

/// The project and region that a policy says, and what the gate brings.
fn google(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    item: &Item<'_>,
    findings: &mut Findings,
) -> (Option<[Said<String>; 2]>, Option<Tree>) {
    let mut of = item.fields(findings);
    let project = of.text("projectName", findings);
    let region = of.text("region", findings);
    let file = of.take("credentialsFile");
    let federation = of.take("workloadIdentityFederationConfig");
    of.end(findings);
    let project = project
        .zip(region)
        .map(|(project, region)| [project, region]);
    if let (Some(_), Some(federation)) = (&file, &federation) {
        let says = "stands beside credentialsFile, and one says who the gate is";
        findings.fault(&federation.spot, says, "keep one of them");
        return (project, None);
    }
    if let Some(federation) = federation {
        let named = project.as_ref().map(|[project, _]| project.value.as_str());
        let tree = federated(cluster, policy, &federation, named, findings);
        return (project, tree);
    }
    let Some(file) = file else {
        let machine = || Tree::map([("metadata", Some(Tree::Plain("true".into())))]);
        let is_given = machines_own(
            cluster,
            policy,
            item,
            "the service account of the machine",
            findings,
        );
        return (project, is_given.then(machine));
    };
    let mut of = file.fields(findings);
    let named = secret(policy, of.need("secretRef", findings), findings);
    of.end(findings);
    let key =
        named.and_then(|named| cluster.file(policy, &named, &["service_account.json"], findings));
    (project, key.map(|key| Tree::map([("key_file", Some(key))])))
}

/// Whether a policy may be for an account of the gate's own machine, which it names no key beside.
fn machines_own(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    item: &Item<'_>,
    whose: &str,
    findings: &mut Findings,
) -> bool {
    let mut gateways = cluster.of_kind("Gateway");
    let is_platforms = gateways.any(|gateway| gateway.namespace == policy.namespace);
    if cluster.mode.is_live && !is_platforms {
        let says = "names no key, and the account of the gate's own machine is for policies of the Gateway's namespace";
        findings.fault(&item.spot, says, "name a Secret, or move the policy there");
        return false;
    }
    findings.warn(&item.spot, format!("names no key: {whose} is used"), "");
    true
}

/// What the gate brings where another issuer vouches for it to Google.
fn federated(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    item: &Item<'_>,
    project_name: Option<&str>,
    findings: &mut Findings,
) -> Option<Tree> {
    let mut of = item.fields(findings);
    let project = of.needed_text("projectID", findings);
    let pool = of.needed_text("workloadIdentityPoolName", findings);
    let provider = of.needed_text("workloadIdentityProviderName", findings);
    let acted = of.take("serviceAccountImpersonation").and_then(|item| {
        let mut of = item.fields(findings);
        let name = of.needed_text("serviceAccountName", findings);
        of.end(findings);
        name
    });
    let exchanged = of.need("oidcExchangeToken", findings);
    of.end(findings);
    let exchanged = exchanged?;
    let mut of = exchanged.fields(findings);
    let token = oidc::token(cluster, policy, &mut of, findings);
    of.end(findings);
    let audience = format!(
        "//iam.googleapis.com/projects/{}/locations/global/workloadIdentityPools/{}/providers/{}",
        project?.value, pool?.value, provider?.value
    );
    let account = match (acted, project_name) {
        // Its name alone is of the project that is called.
        (Some(said), Some(project)) if !said.value.contains('@') => {
            let address = format!("{}@{project}.iam.gserviceaccount.com", said.value);
            Some(Tree::text(address).of(&said.spot))
        }
        (Some(said), _) => Some(Tree::text(said.value).of(&said.spot)),
        (None, _) => None,
    };
    let federation = Tree::map([
        ("audience", Some(Tree::text(audience).of(&item.spot))),
        ("token", Some(token?)),
        ("service_account", account),
    ]);
    Some(Tree::map([("federation", Some(federation))]))
}

/// A role that a token of another issuer lets the gate take.
fn role(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    item: &Item<'_>,
    findings: &mut Findings,
) -> Option<Tree> {
    let mut of = item.fields(findings);
    let role = of.needed_text("awsRoleArn", findings);
    let token = oidc::token(cluster, policy, &mut of, findings);
    of.end(findings);
    let role = role?;
    Some(Tree::map([
        ("role_arn", Some(Tree::text(role.value).of(&role.spot))),
        ("token", Some(token?)),
    ]))
}

fn aws(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    item: &Item<'_>,
    findings: &mut Findings,
) -> Option<Tree> {
    let mut of = item.fields(findings);
    let region = of.needed_text("region", findings);
    let file = of.take("credentialsFile");
    let exchanged = of.take("oidcExchangeToken");
    of.end(findings);
    let in_region = |region: Option<Said<String>>, name, from: Tree| {
        let region = region?;
        let region = Tree::text(region.value).of(&region.spot);
        Some(Tree::map([("region", Some(region)), (name, Some(from))]))
    };
    if let (Some(_), Some(exchanged)) = (&file, &exchanged) {
        let says = "stands beside credentialsFile, and one says who the gate is";
        findings.fault(&exchanged.spot, says, "keep one of them");
        return None;
    }
    if let Some(exchanged) = exchanged {
        let role = role(cluster, policy, &exchanged, findings)?;
        return in_region(region, "web_identity", role);
    }
    let Some(file) = file else {
        let is_given = machines_own(
            cluster,
            policy,
            item,
            "what AWS's chain of defaults finds of the machine",
            findings,
        );
        let chain = Tree::Plain("true".into());
        return is_given
            .then(|| in_region(region, "default_chain", chain))
            .flatten();
    };
    let mut of = file.fields(findings);
    let profile = of
        .text("profile", findings)
        .map_or_else(|| "default".to_owned(), |said| said.value);
    let named = secret(policy, of.need("secretRef", findings), findings);
    of.end(findings);
    // It becomes part of the name of a file.
    if !profile
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    {
        let says = "names a profile that is more than letters, digits, - and _";
        findings.fault(&file.spot, says, "give the profile another name");
        return None;
    }
    let named = named?;
    let object = cluster.resolve(policy, &named, findings)?;
    let Some(Some(bytes)) = cluster.bytes(object, "credentials", findings) else {
        findings.fault(
            &named.spot,
            format!("the Secret {} has no key credentials", object.id()),
            "add it",
        );
        return None;
    };
    let text = String::from_utf8_lossy(&bytes);
    let key = |name: &str| member_of(&text, &profile, name);
    let (Some(id), Some(secret)) = (key("aws_access_key_id"), key("aws_secret_access_key")) else {
        findings.fault(
            &named.spot,
            format!("has no keys of the profile {profile}"),
            "write aws_access_key_id and aws_secret_access_key below [PROFILE]",
        );
        return None;
    };
    let source = |name: &str, value: &str| {
        let path = cluster.give(
            object,
            &format!("credentials.d/{profile}/{name}"),
            value.as_bytes().to_vec(),
        );
        Content::File(path).source(&named.spot)
    };
    let region = region?;
    Some(Tree::map([
        ("region", Some(Tree::text(region.value).of(&region.spot))),
        ("access_key_id", Some(Tree::text(id).of(&named.spot))),
        (
            "secret_access_key",
            Some(source("secret_access_key", secret)),
        ),
        (
            "session_token",
            key("aws_session_token").map(|token| source("session_token", token)),
        ),
    ]))
}

/// A member of a profile, in the form of AWS' own file.
fn member_of<'t>(text: &'t str, profile: &str, name: &str) -> Option<&'t str> {
    let mut is_in = false;
    for line in text.lines().map(str::trim) {
        if let Some(head) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            is_in = head.trim() == profile;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_in)
            && key.trim() == name
        {
            return Some(value.trim());
        }
    }
    None
}
