// SPDX-License-Identifier: Apache-2.0
// Numbers, money and time as people read them.

const moneyFormats = new Map();

export function money(cents, currency = 'EUR') {
  const whole = cents % 100 === 0;
  const key = `${currency}${whole}`;
  if (!moneyFormats.has(key)) {
    moneyFormats.set(key, new Intl.NumberFormat('en', { style: 'currency', currency, minimumFractionDigits: whole ? 0 : 2, maximumFractionDigits: whole ? 0 : 2 }));
  }
  return moneyFormats.get(key).format(cents / 100);
}

export const number = (value) => new Intl.NumberFormat('en').format(value);

export function percent(part, total, digits = 0) {
  return total > 0 ? `${((100 * part) / total).toFixed(digits)}%` : '–';
}

/** 252 → "4:12" */
export function clockTime(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

export function dateTime(iso) {
  return iso ? new Date(iso).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' }) : '';
}

export function timeOfDay(iso) {
  return new Date(iso).toLocaleTimeString('en', { hour12: false });
}

/** 0.0023 s → "2.3 ms" */
export function duration(seconds) {
  if (seconds == null || Number.isNaN(seconds)) return '–';
  if (seconds < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  return `${seconds.toFixed(1)} s`;
}
