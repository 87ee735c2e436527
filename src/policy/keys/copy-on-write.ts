/** Keys below `cow`: how the changes to copy-on-write zones are kept. */
import { formatDuration, formatSize, parseDuration, within } from '../../text/units.ts'
import { UPPERS } from '../values.ts'
import { type Measured, scalar, section, word } from './key.ts'
import { atMost, operatorsOnly } from './narrowing.ts'
import { growth } from './resources.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** Ten years: a time that no one means to reach, and that JavaScript's dates can hold. */
const keep = within(parseDuration, {
  least: 1000,
  most: 3650 * DAY_MS,
  expected: 'a time from 1s to 3650d, such as 7d',
})

export const cow = section({
  keep: scalar<string, number>(keep, {
    description: 'How long changes to copy-on-write zones wait to be applied before llm-do prune removes them.',
    unit: 'time',
    type: 'string',
    default: '7d',
    flag: { name: 'cow-keep', argument: 'TIME', group: 'Files', isRare: true },
    // Changes that wait are the operator's to keep.
    narrowing: { ...operatorsOnly<number>('7d'), shows: formatDuration, grants: formatDuration },
  }),
  size: scalar<Measured, number | null>(growth, {
    description: 'Most bytes that the changes to copy-on-write zones take; in memory never more than resources.memory.',
    unit: 'size or none',
    type: ['string', 'number'],
    default: '1g',
    flag: { name: 'cow-size', argument: 'SIZE', group: 'Limits', isRare: true },
    narrowing: atMost(formatSize),
  }),
  upper: word(UPPERS, {
    description:
      'Where changes to copy-on-write zones are kept: on disk, in memory, where they last until the next boot, or in a copy of the directory, which needs no overlay.',
    default: 'disk',
    flag: { name: 'cow-upper', argument: 'disk|memory|copy', group: 'Files', isRare: true },
    narrowing: operatorsOnly('disk'),
  }),
})
