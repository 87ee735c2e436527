import { expect, test } from 'vitest'
import { describeRecipes, RECIPES, ROWS } from './recipes.ts'

test('every recipe has a row, and no row is left over', () => {
  expect(ROWS.map(({ title }) => title)).toEqual(RECIPES.map(({ title }) => title))
})

describeRecipes(ROWS.filter(({ isDeep }) => !isDeep))
