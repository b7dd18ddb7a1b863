// SPDX-License-Identifier: Apache-2.0
// Who is here. In the demo a guest gets a buyer's and an admin's token without asking; on a real server one token comes
// from the sign-in form or from #token= in the address. Kept in localStorage, so that a reload and a second tab are the
// same person with the same seats.
import { ApiError, call } from './api.js';

const PLACE = 'holdfast.session';

function claimsOf(token) {
  try {
    const part = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    return JSON.parse(atob(part));
  } catch {
    return null;
  }
}

function isEverywhere(token) {
  const claims = token && claimsOf(token);
  return Boolean(claims && claims.role === 'operator' && !claims.org);
}

/** What a good token may always read. */
const probe = (token) => (isEverywhere(token) ? '/api/admin/events' : '/api/events');

function readKept() {
  try {
    return JSON.parse(localStorage.getItem(PLACE));
  } catch {
    return null;
  }
}

class Session {
  state = $state('starting'); // starting, signed-in, signed-out, unreachable
  demo = $state(false);
  buyer = $state.raw(null); // the token that buys
  admin = $state.raw(null); // the token that administrates, or null
  trouble = $state('');

  /** An operator whose token names no organization: every event's box office, and nothing of one's own. */
  get everywhere() {
    return isEverywhere(this.admin);
  }

  async begin() {
    const fragment = new URLSearchParams(location.hash.slice(1)).get('token');
    if (fragment) {
      history.replaceState(null, '', '#/');
      return this.signIn(fragment);
    }
    const kept = readKept();
    if (kept?.buyer) {
      this.#take(kept);
      try {
        await call('GET', probe(this.buyer), { token: this.buyer });
        this.state = 'signed-in';
        return;
      } catch (error) {
        if (error.status !== 401) {
          this.state = error.isOffline ? 'unreachable' : 'signed-in';
          return;
        }
      }
    }
    await this.#beGuest();
  }

  async #beGuest() {
    try {
      const guest = await call('POST', '/api/demo/token');
      this.#take({ demo: true, buyer: guest.buyer.token, admin: guest.admin.token });
      this.#keep();
      this.state = 'signed-in';
    } catch (error) {
      this.state = error.isOffline ? 'unreachable' : 'signed-out';
    }
  }

  /** A token from a person: checked with the server before it is believed. */
  async signIn(token) {
    this.trouble = '';
    const claims = claimsOf(token);
    if (!claims) {
      this.trouble = 'not_a_token';
      this.state = 'signed-out';
      return;
    }
    try {
      await call('GET', probe(token), { token });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 401 || error.isOffline) {
        this.trouble = error.isOffline ? 'offline' : 'refused';
        this.state = 'signed-out';
        return;
      }
    }
    const isAdmin = claims.role === 'admin' || claims.role === 'operator';
    this.#take({ demo: false, buyer: token, admin: isAdmin ? token : null });
    this.#keep();
    this.state = 'signed-in';
  }

  /** The server does not know our token any more: a guest becomes a new guest, others sign in again. */
  async lost() {
    if (this.state !== 'signed-in') return;
    const wasDemo = this.demo;
    this.state = 'starting';
    localStorage.removeItem(PLACE);
    this.buyer = this.admin = null;
    if (wasDemo) await this.#beGuest();
    else {
      this.trouble = 'ended';
      this.state = 'signed-out';
    }
  }

  signOut() {
    localStorage.removeItem(PLACE);
    this.buyer = this.admin = null;
    this.state = 'signed-out';
  }

  #take({ demo, buyer, admin }) {
    this.demo = Boolean(demo);
    this.buyer = buyer;
    this.admin = admin;
  }

  #keep() {
    localStorage.setItem(PLACE, JSON.stringify({ demo: this.demo, buyer: this.buyer, admin: this.admin }));
  }
}

export const session = new Session();
