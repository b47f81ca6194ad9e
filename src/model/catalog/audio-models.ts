/** The model of ChatGPT's own transcription route. No catalog lists it. */
export const TRANSCRIPTION_MODEL = 'gpt-4o-transcribe'

/** Home tools have `whisper-1` built in; all of these are transcribed with the one model there is. */
export const TRANSCRIPTION_NAMES = [TRANSCRIPTION_MODEL, 'gpt-4o-mini-transcribe', 'whisper-1'] as const
