import { expect, test } from 'vitest'
import { printPlan } from './print-plan.ts'

const LONG = 'x'.repeat(100)
const PLAN = {
  schema: 1,
  needs: ['a', 'b'],
  protect: [LONG, LONG, 'short'],
  zones: [{ name: 'work', protect: [], from: LONG.repeat(2) }],
  limits: { memory: { max: 1 }, output: 2 },
  image: undefined,
  none: [],
}

test('an entry of a list, an object without objects and a short list are one line each', () => {
  expect(printPlan(PLAN).split('\n')).toEqual([
    '{',
    '  "schema": 1,',
    '  "needs": ["a", "b"],',
    '  "protect": [',
    `    "${LONG}",`,
    `    "${LONG}", "short"`,
    '  ],',
    '  "zones": [',
    `    { "name": "work", "protect": [], "from": "${LONG}${LONG}" }`,
    '  ],',
    '  "limits": {',
    '    "memory": { "max": 1 },',
    '    "output": 2',
    '  },',
    '  "none": []',
    '}',
    '',
  ])
})

test('what is printed is the same JSON', () => {
  expect(JSON.parse(printPlan(PLAN))).toEqual(JSON.parse(JSON.stringify(PLAN)))
})
