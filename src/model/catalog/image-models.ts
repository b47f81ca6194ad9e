/** The image models of ChatGPT's own image routes. No catalog lists them. */
export const IMAGE_MODELS = ['gpt-image-2', 'gpt-image-1.5', 'gpt-image-1', 'gpt-image-1-mini'] as const
export type ImageModel = (typeof IMAGE_MODELS)[number]

export const DEFAULT_IMAGE_MODEL: ImageModel = 'gpt-image-2'

export const isImageModel = (model: string | null): boolean => IMAGE_MODELS.some((name) => name === model)
