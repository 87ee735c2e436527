/** Amounts are kept in cents. */
export function toCents(text) {
  const match = /^(-?)(\d+)(?:\.(\d{2}))?$/.exec(text)
  if (match === null) throw new Error(`no amount: ${text}`)
  const [, sign, units, cents = '00'] = match
  return Number(`${sign}${units}${cents}`)
}

export function format(cents, currency = 'EUR') {
  const units = (cents / 100).toFixed(2)
  return `${units.replace(/\B(?=(\d{3})+\.)/g, ' ')} ${currency}`
}
