/* The address in what is pasted. */
;(() => {
  // The server knows the Host header at best; behind a proxy that ends TLS the address bar knows better.
  const correct = () => {
    for (const tabs of document.querySelectorAll('[data-guess]')) {
      const { guess } = tabs.dataset
      if (guess !== location.origin)
        for (const code of tabs.querySelectorAll('pre code'))
          code.textContent = code.textContent.replaceAll(guess, location.origin)
      delete tabs.dataset.guess
    }
  }

  document.addEventListener('htmx:after:swap', correct)
  correct()
})()
