/** The key that has a run watched, so that its result names what the sandbox refused. */
import { toggle } from './key.ts'

export const explain = toggle({
  description:
    'Watch what the command opens, writes and connects to: a run that fails names what the sandbox refused it, and the flag for each.',
  flag: {
    name: 'explain',
    group: 'Output',
    help: 'Say what the sandbox refused a command that fails, with the flag for each.',
  },
  need: (value) => (value ? 'explain' : undefined),
})
