/** The key that has a run watched, so that its result names what the sandbox refused. */
import { readBoolean } from '../readers.ts'
import { type Key, scalar } from './key.ts'
import { ranked } from './narrowing.ts'

export const explain: Key<boolean, boolean, boolean> & { readonly default: boolean } = scalar<boolean, boolean>(
  readBoolean,
  {
    description:
      'Watch what the command opens, writes and connects to: a run that fails names what the sandbox refused it, and the flag for each.',
    unit: 'true or false',
    type: 'boolean',
    default: false,
    flag: {
      name: 'explain',
      group: 'Output',
      help: 'Say what the sandbox refused a command that fails, with the flag for each.',
    },
    narrowing: ranked([false, true]),
    need: (value) => (value ? 'explain' : undefined),
  },
)
