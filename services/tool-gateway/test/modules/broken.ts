throw new Error('it breaks.');
