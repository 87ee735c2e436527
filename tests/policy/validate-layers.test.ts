import { describe, expect, test } from 'vitest'
import { BUILT_IN } from '../../src/policy/built-in.ts'
import { environmentLayers } from '../../src/policy/environment.ts'
import type { PolicyLayer } from '../../src/policy/layer.ts'
import { flagLayer } from '../../src/policy/option-layer.ts'
import { checkLayer } from '../../src/policy/validate-layer.ts'
import { checkLayers } from '../../src/policy/validate-layers.ts'
import { saying } from './layers.ts'

describe('layers are checked', () => {
  test('in the order of their authority, over the built-in one', async () => {
    const layers = [saying({ tty: true }, 'flag'), saying({ tty: false }, 'profile')]
    expect((await checkLayers(layers)).map(({ layer }) => layer.layer)).toEqual(['built-in', 'profile', 'flag'])
  })

  test.each<[string, PolicyLayer]>([
    ['nothing', saying({})],
    ['something', saying({ resources: { memory: '1g' }, zones: [{ name: 'a', hostPath: 'a' }] })],
    ['nothing that is understood', saying({ memry: '1g', tty: 3 })],
    ['a list', saying([])],
    ['null', saying(null)],
    ['nothing but what could not be parsed', { ...saying({}), problems: ['--zone: expected NAME=SRC, got "x".'] }],
    ['no option', flagLayer({}, '/cwd')],
    ...environmentLayers({}, '/cwd').layers.map((layer): [string, PolicyLayer] => [
      `no variable (${layer.layer})`,
      layer,
    ]),
  ])('and one that says %s is read as the schema reads it', async (_, layer) => {
    expect((await checkLayers([layer]))[1]).toEqual(checkLayer(layer))
  })

  test('and the built-in one is read as the schema reads it', async () => {
    expect((await checkLayers([]))[0]).toEqual(checkLayer(BUILT_IN))
  })

  test('but not again where it is known what a layer says', async () => {
    const parsed = { tty: true }
    expect((await checkLayers([{ ...saying({ tty: false }), parsed }]))[1]?.parsed).toBe(parsed)
  })
})
