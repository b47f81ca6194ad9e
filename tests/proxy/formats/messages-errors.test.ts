/** Errors of a full context, in the words for which Claude Code compacts a conversation. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../../../src/errors.ts'
import { messagesErrors } from '../../../src/proxy/formats/messages-errors.ts'

const errors = messagesErrors({ tokens: 9000, maximum: 272_000 })
const sourceError = (message: string, { status = 400, code = null as string | null } = {}) =>
  new AppError('model_source_error', { status, message, upstream: { code, type: null }, body: '{}' })

describe('a full context of a model source', () => {
  test.each([
    [
      "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
      'prompt is too long: 9000 tokens > 8192 maximum',
    ],
    [
      'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32,768 maximum context length',
      'prompt is too long: 32769 tokens > 32768 maximum',
    ],
    [
      'The decoder prompt (length 9000) is longer than the maximum model length of 4096.',
      'prompt is too long: 9000 tokens > 4096 maximum',
    ],
    [
      'the request exceeds the available context size (4096 tokens), try increasing it',
      'prompt is too long: 9000 tokens > 4096 maximum',
    ],
    ['Input is too long for requested model.', 'prompt is too long: 272001 tokens > 272000 maximum'],
    ['prompt too long; exceeded max context length by 4 tokens', 'prompt is too long: 272001 tokens > 272000 maximum'],
  ])('reported as "%s" has these words', (message, expected) => {
    const { code, status, extra, message: written } = errors(sourceError(message))
    expect([code, status, extra.body, written]).toEqual(['invalid_request_error', 400, undefined, expected])
  })

  test('with the code of OpenAI has the maximum that the text names', () => {
    const message = "This model's maximum context length is 8192 tokens, however you requested 12000 tokens."
    const { message: written } = errors(sourceError(message, { code: 'context_length_exceeded', status: 502 }))
    expect(written).toBe('prompt is too long: 9000 tokens > 8192 maximum')
  })

  test.each([
    ["Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64.", 400],
    ['The context window could not be allocated.', 500],
  ])('is not "%s" with status %d', (message, status) => {
    const err = sourceError(message, { status })
    expect(errors(err)).toBe(err)
  })
})
