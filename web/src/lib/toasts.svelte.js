// SPDX-License-Identifier: Apache-2.0
// Short messages at the foot of the page. They are read aloud by the one live region that shows them.

const SHOWN_MS = 6500;
const COUNT_MAX = 3;

class Toasts {
  list = $state.raw([]);
  #next = 1;

  say(text, tone = 'info') {
    const toast = { id: this.#next++, text, tone };
    this.list = [...this.list.filter((one) => one.text !== text), toast].slice(-COUNT_MAX);
    setTimeout(() => this.drop(toast.id), SHOWN_MS);
  }

  drop(id) {
    this.list = this.list.filter((one) => one.id !== id);
  }
}

export const toasts = new Toasts();
