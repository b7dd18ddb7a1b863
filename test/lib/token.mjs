// SPDX-License-Identifier: Apache-2.0
// Makes tokens, good and bad, with node:crypto alone, so that a mistake in the server's own token code cannot hide behind
// itself. Every part of a token can be replaced; nothing is checked here.

import { createHmac, randomUUID, sign as signWithKey } from 'node:crypto';

export const uuid = () => randomUUID();
export const now = () => Math.floor(Date.now() / 1000);
export const base64url = (value) => Buffer.from(value).toString('base64url');

/** A signer for HS256/384/512 with a secret, RS256 and ES256 with a private key, and `none`. */
export function signature(alg, key, input) {
  switch (alg) {
    case 'none':
      return '';
    case 'HS256':
    case 'HS384':
    case 'HS512':
      return createHmac(`sha${alg.slice(2)}`, key).update(input).digest('base64url');
    case 'RS256':
    case 'RS512':
      return signWithKey(`sha${alg.slice(2)}`, Buffer.from(input), key).toString('base64url');
    case 'ES256':
      return signWithKey('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url');
    default:
      throw new Error(`no such algorithm in the tests: ${alg}`);
  }
}

/** `header` and `claims` are taken as they are; strings are used raw, so that broken JSON can be sent too. */
export function makeToken(key, claims, { alg = 'HS256', header } = {}) {
  const raw = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
  const input = `${base64url(raw(header ?? { alg, typ: 'JWT' }))}.${base64url(raw(claims))}`;
  return `${input}.${signature(alg, key, input)}`;
}

/** A good token's claims, with what the caller wants changed; `undefined` removes a claim. */
export function claimsFor({ org, user, role = 'buyer', ttl = 3600, ...rest }) {
  return { sub: user, org, role, iat: now(), exp: now() + ttl, ...rest };
}
