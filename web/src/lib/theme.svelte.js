// SPDX-License-Identifier: Apache-2.0
// Light or dark: the system's wish unless a person chose. Whoever draws on a canvas listens for changes.

const PLACE = 'holdfast.theme';
const system = matchMedia('(prefers-color-scheme: dark)');

class Theme {
  chosen = $state(localStorage.getItem(PLACE)); // light, dark or null
  systemDark = $state(system.matches);

  constructor() {
    system.addEventListener('change', () => {
      this.systemDark = system.matches;
      this.#show();
    });
    this.#show();
  }

  get dark() {
    return this.chosen ? this.chosen === 'dark' : this.systemDark;
  }

  toggle() {
    this.chosen = this.dark ? 'light' : 'dark';
    localStorage.setItem(PLACE, this.chosen);
    this.#show();
  }

  #show() {
    document.documentElement.dataset.theme = this.dark ? 'dark' : 'light';
  }
}

export const theme = new Theme();
