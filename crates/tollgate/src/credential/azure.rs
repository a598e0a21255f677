//! Microsoft Entra: tokens of an application, by one of three proofs, or of the machine's own identity.

use callout::{
    ClientAuth, Federation, Grant, MetadataMethod, MetadataRequest, OAuthRequest, SecretSource,
    TokenRequest,
};
use config::{AzureProof, AzureSource};
use jose::Algorithm;
use policy::secret::Secret;
use serde_json::Map;

use super::subject::Subject;
use super::{oauth, url};

pub(super) fn request(source: &AzureSource) -> Result<TokenRequest, String> {
    Ok(match source {
        AzureSource::Managed(at) => TokenRequest::Metadata(MetadataRequest {
            method: MetadataMethod::Get,
            url: url(at)?,
            headers: vec![(
                "metadata".to_owned(),
                SecretSource::fixed(Secret::new(b"true".to_vec())),
            )],
        }),
        AzureSource::Application {
            url: at,
            client_id,
            scope,
            proof,
        } => {
            let (auth, asked) = client_auth(proof, client_id, at)?;
            let mut request = OAuthRequest::new(url(at)?, auth, Grant::ClientCredentials);
            request.scope = Some(scope.clone());
            Subject::before(asked, TokenRequest::OAuth(Box::new(request)))
        }
    })
}

/// Who the gate is, and what is asked for before it says so.
fn client_auth(
    proof: &AzureProof,
    client_id: &str,
    at: &str,
) -> Result<(ClientAuth, Option<Box<Federation>>), String> {
    let id = client_id.to_owned();
    let auth = match proof {
        AzureProof::Secret(secret) => ClientAuth::Post {
            id,
            secret: SecretSource::fixed(secret.clone()),
        },
        AzureProof::Token(token) => {
            let Subject { token, asked } = Subject::new(token)?;
            let auth = ClientAuth::Assertion {
                id: Some(id),
                assertion: token,
            };
            return Ok((auth, asked));
        }
        AzureProof::Certificate(certificate, pem) => {
            let thumbprint = jose::sign::certificate_thumbprint(certificate)
                .map_err(|fault| format!("certificate: {fault}"))?;
            let mut header = Map::new();
            header.insert("x5t#S256".to_owned(), thumbprint.into());
            // What Entra asks of certificates with RSA keys, which are those that it takes.
            let key = oauth::key(pem, Some(Algorithm::Ps256));
            let key = key.map_err(|fault| format!("key: {fault}"))?;
            ClientAuth::Assertion {
                assertion: oauth::client_assertion(key, header, client_id, at),
                id: Some(id),
            }
        }
    };
    Ok((auth, None))
}
