// What is on the screen against what was there: both shrunk to some hundred pixels, so that letters are a blur and places,
// colours and proportions are what is left. Gives the mean difference of a channel, of 255; with `update` the file is taken anew.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

// looker: a page that may run script; screen: a PNG in base64; wide: how many pixels are left of its width.
export const fromReference = async (looker, screen, file, wide, update) => {
  const [small, away] = await looker.evaluate(async ([now, before, w]) => {
    const pixels = async (data, high) => {
      const image = new Image();
      image.src = `data:image/png;base64,${data}`;
      await image.decode();
      const canvas = document.createElement('canvas');
      [canvas.width, canvas.height] = [w, high ?? Math.round(w * image.height / image.width)];
      const to = canvas.getContext('2d');
      to.imageSmoothingQuality = 'high';
      to.drawImage(image, 0, 0, canvas.width, canvas.height);
      return [canvas.toDataURL('image/png').split(',')[1], to.getImageData(0, 0, canvas.width, canvas.height)];
    };
    const [png, is] = await pixels(now);
    if (!before) return [png, 0];
    const [, was] = await pixels(before, is.height);
    let sum = 0;
    for (let i = 0; i < is.data.length; i++) sum += Math.abs(is.data[i] - was.data[i]);
    return [png, sum / is.data.length];
  }, [screen, !update && existsSync(file) ? readFileSync(file, 'base64') : null, wide]);
  if (update) writeFileSync(file, Buffer.from(small, 'base64'));
  return away;
};
