/** The standing adversary, where every user has the same walls: what decides the next run, and what the runner starts. */
import { testAttacks } from './daily.ts'
import { HOST_ATTACKS } from './host.ts'
import { STATE_ATTACKS } from './state.ts'

testAttacks([...STATE_ATTACKS, ...HOST_ATTACKS])
