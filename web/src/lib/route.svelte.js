// SPDX-License-Identifier: Apache-2.0
// Where we are, from the address's fragment: #/, #/event/ID, #/checkout/ID, #/tickets, #/office, #/office/ID/TAB.

function parse() {
  const parts = location.hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decodeURIComponent);
  return { page: parts[0] ?? 'events', id: parts[1] ?? null, tab: parts[2] ?? null };
}

class Route {
  current = $state.raw(parse());

  constructor() {
    addEventListener('hashchange', () => (this.current = parse()));
  }

  go(path) {
    location.hash = path;
  }
}

export const route = new Route();
