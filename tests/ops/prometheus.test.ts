/** The text format: what a scraper reads of families, labels and histograms. */
import { expect, test } from 'bun:test'
import { exposition, Histogram } from '../../src/ops/prometheus.ts'

test('a family has its help and type before its samples; one without samples is left out', () => {
  const text = exposition([
    { name: 'a_total', type: 'counter', help: 'Things.', samples: [{ value: 2 }, { labels: { k: 'v' }, value: 1.5 }] },
    { name: 'b', type: 'gauge', help: 'Nothing.', samples: [] },
  ])
  expect(text).toBe('# HELP a_total Things.\n# TYPE a_total counter\na_total 2\na_total{k="v"} 1.5\n')
})

test('no label value can end its quotes or its line', () => {
  const samples = [{ labels: { k: 'a"b\\c\nd\u0007' }, value: 1 }]
  const text = exposition([{ name: 'a', type: 'gauge', help: 'x', samples }])
  expect(text.split('\n')[2]).toBe('a{k="a\\"b\\\\c\\nd"} 1')
})

test('buckets add up, a value on a bound belongs to it, and the rest is in +Inf', () => {
  const histogram = new Histogram([1, 5])
  for (const value of [0.5, 1, 3, 9]) histogram.observe(value)
  expect([...histogram.samples()]).toEqual([
    { suffix: '_bucket', labels: { le: '1' }, value: 2 },
    { suffix: '_bucket', labels: { le: '5' }, value: 3 },
    { suffix: '_bucket', labels: { le: '+Inf' }, value: 4 },
    { suffix: '_sum', value: 13.5 },
    { suffix: '_count', value: 4 },
  ])
})
