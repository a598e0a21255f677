// An OpenID provider: panva's oidc-provider with the clients, accounts and keys of the tests.
//
// It reads one line of JSON, `{ port, redirects }`, and serves http://127.0.0.1:port. Beside what the provider itself
// answers there is `POST /test/keys` with `{ "published": [names], "signing": name }`: the sets of keys that go by these
// names are published, and the last says whose keys sign from now on. Tokens that were given out stay.
// It ends with its standard input.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const modules = process.env.TOLLGATE_E2E_NODE_MODULES;
if (!modules) throw new Error('TOLLGATE_E2E_NODE_MODULES is not set');
const require = createRequire(join(modules, 'here.cjs'));
const { Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));

// Clients whose access tokens are signed, and with which algorithm; those of the others are opaque.
const SIGNED = { 'batch-rsa': 'RS256', 'batch-ec': 'ES256', 'batch-ed': 'EdDSA' };

// Who may log in. The password is whatever is typed.
const ACCOUNTS = {
  ada: { name: 'Ada', email: 'ada@example.test', email_verified: true, groups: ['platform', 'staff'] },
  bob: { name: 'Bob', email: 'bob@example.test', email_verified: true, groups: ['staff'] },
};

const KINDS = [
  ['RS256', 'rsa', { modulusLength: 2048 }],
  ['ES256', 'ec', { namedCurve: 'P-256' }],
  ['EdDSA', 'ed25519', {}],
];

const made = new Map();

// The private keys of a name, one for each algorithm; made when they are first asked for.
function keys(name) {
  if (!made.has(name)) {
    made.set(name, KINDS.map(([alg, type, options]) => {
      const { privateKey } = generateKeyPairSync(type, options);
      return { ...privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: `${name}-${alg}` };
    }));
  }
  return made.get(name);
}

// What was given out, kept while keys change.
const stored = new Map();

class Adapter {
  constructor(model) {
    this.model = model;
  }

  key(id) {
    return `${this.model}:${id}`;
  }

  async upsert(id, payload) {
    stored.set(this.key(id), payload);
  }

  async find(id) {
    return stored.get(this.key(id));
  }

  async findByUid(uid) {
    const found = [...stored].find(([key, payload]) => key.startsWith(this.key('')) && payload.uid === uid);
    return found?.[1];
  }

  async consume(id) {
    stored.get(this.key(id)).consumed = Math.floor(Date.now() / 1000);
  }

  async destroy(id) {
    stored.delete(this.key(id));
  }

  async revokeByGrantId(grantId) {
    for (const [key, payload] of stored) if (payload.grantId === grantId) stored.delete(key);
  }
}

function machine(client_id) {
  return { client_id, client_secret: `${client_id}-secret`, grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
}

function provider(issuer, redirects, { published, signing }) {
  const sets = [signing, ...published.filter((name) => name !== signing)];
  return new Provider(issuer, {
    adapter: Adapter,
    // The first key that fits signs.
    jwks: { keys: sets.flatMap(keys) },
    cookies: { keys: ['for tests alone'] },
    clients: [
      ...['batch-rsa', 'batch-ec', 'batch-ed', 'batch-opaque', 'gate'].map(machine),
      {
        client_id: 'tollgate',
        client_secret: 'tollgate-secret',
        grant_types: ['authorization_code', 'refresh_token'],
        redirect_uris: redirects,
        post_logout_redirect_uris: redirects.map((uri) => new URL('/', uri).href),
      },
    ],
    pkce: { required: () => true },
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'], groups: ['groups'] },
    scopes: ['openid', 'offline_access', 'call'],
    // What a login asks for stands in its ID token.
    conformIdTokenClaims: false,
    async findAccount(ctx, sub) {
      const account = Object.hasOwn(ACCOUNTS, sub) ? ACCOUNTS[sub] : undefined;
      return account && { accountId: sub, claims: async () => ({ sub, ...account }) };
    },
    features: {
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: async (ctx, client) => client.clientId === 'gate' },
      revocation: { enabled: true, allowedPolicy: async (ctx, client, token) => client.clientId === token.clientId },
      resourceIndicators: {
        enabled: true,
        async getResourceServerInfo(ctx, audience, client) {
          const alg = SIGNED[client.clientId];
          return {
            audience,
            scope: 'call',
            accessTokenTTL: 600,
            ...(alg ? { accessTokenFormat: 'jwt', jwt: { sign: { alg } } } : { accessTokenFormat: 'opaque' }),
          };
        },
      },
    },
  }).callback();
}

async function body(request) {
  let text = '';
  for await (const chunk of request) text += chunk;
  return JSON.parse(text);
}

const lines = createInterface({ input: process.stdin });
lines.on('close', () => process.exit());
lines.once('line', (line) => {
  const { port, redirects } = JSON.parse(line);
  const issuer = `http://127.0.0.1:${port}`;
  let answer = provider(issuer, redirects, { published: ['first'], signing: 'first' });
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST' || request.url !== '/test/keys') return answer(request, response);
    answer = provider(issuer, redirects, await body(request));
    return response.end('{}');
  });
  server.listen(port, '127.0.0.1', () => console.log('ready'));
});
