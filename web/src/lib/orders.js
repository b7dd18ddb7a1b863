// SPDX-License-Identifier: Apache-2.0
// Which orders were made on this device, newest first. Only their ids are kept; what they are is asked of the server.

const PLACE = 'holdfast.orders';
const COUNT_MAX = 50;

export function rememberedOrders() {
  try {
    const list = JSON.parse(localStorage.getItem(PLACE));
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}

export function rememberOrder(order) {
  const others = rememberedOrders().filter((one) => one.id !== order.id);
  localStorage.setItem(PLACE, JSON.stringify([order, ...others].slice(0, COUNT_MAX)));
}
