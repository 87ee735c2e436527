/** No word, variable or file of a caller is an option of node: every position, by every supported node. */
import { expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { describeNodeOptions, NODES, POSITIONS } from './node-options.ts'

describeWith('newer-nodes', 'every supported line of node', () => {
  test('is tried', () => {
    expect(NODES.map(({ major }) => major)).toEqual(expect.arrayContaining([22, 24]))
  })
})

describeNodeOptions({ nodes: NODES, positions: POSITIONS })
